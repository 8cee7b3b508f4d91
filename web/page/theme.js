// The switch between light and dark. It is stored for the next visit if the browser allows it.

const shown = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function applyStoredTheme() {
  try {
    const stored = localStorage.getItem("theme");
    if (stored) document.documentElement.dataset.theme = stored;
  } catch { /* A page from disk may have no storage. */ }
}

applyStoredTheme();
document.getElementById("theme")?.addEventListener("click", () => {
  const theme = shown() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* See above. */ }
  document.dispatchEvent(new Event("theme"));
});
