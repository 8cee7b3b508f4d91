//! Kernels of Vulkan modules: one compute pipeline per SPIR-V shader.

use super::Vulkan;
use super::instance::VulkanDevice;
use crate::device::backend::Driver;
use crate::device::backend::code::{KernelDriver, c_name};
use crate::device::error::reject;
use crate::device::launch::{ArgType, Packed, WorkSizes};
use crate::device::module::KernelDescription;
use crate::device::{DEV_51, DEV_54, Result, Space, Stream};
use crate::rule::Kind;
use ash::vk;
use std::sync::Arc;

/// A shader, as the payload stores it.
#[derive(Clone, Debug)]
pub(crate) struct SpirvShader {
    /// The kernel's name, which is also the shader's entry point.
    pub name: String,
    /// The flags. Bit 0: scalars come through a uniform buffer instead of push constants.
    pub flags: u32,
    /// The SPIR-V words, in the host's byte order.
    pub words: Vec<u32>,
}

/// A shader that is compiled for a device.
pub(crate) struct VulkanPipeline {
    /// The pipeline: the shader with its entry point.
    pipeline: vk::Pipeline,
    /// The layout: one descriptor set, and the push constants.
    layout: vk::PipelineLayout,
    /// The layout of the descriptor set: the kind of each binding.
    set_layout: vk::DescriptorSetLayout,
    /// The shader module, kept so that it can be destroyed with the rest.
    shader: vk::ShaderModule,
    /// True if scalars are passed through a uniform buffer.
    uniform: bool,
}

/// The bytes of a scalar, since 0.8 (DEV-51).
const SLOT: usize = 8;

impl KernelDriver for Vulkan {
    type Code = Vec<SpirvShader>;
    type Program = Vec<SpirvShader>;
    type Kernel = VulkanPipeline;

    /// Copies the shaders. The driver gets a shader only when its kernel is first launched.
    fn load(_: &VulkanDevice, code: &Vec<SpirvShader>) -> Result<Vec<SpirvShader>> {
        Ok(code.clone())
    }

    fn kernel(
        on: &VulkanDevice,
        program: &Vec<SpirvShader>,
        info: &KernelDescription,
    ) -> Result<VulkanPipeline> {
        match program.iter().find(|shader| shader.name == info.name) {
            Some(shader) => make(on, info, shader),
            None => reject(
                DEV_54,
                Kind::Missing,
                format!("the module has no shader for `{}`", info.name),
            ),
        }
    }

    unsafe fn launch(
        (own, on): (i32, &VulkanDevice),
        pipeline: &VulkanPipeline,
        _: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        _: Stream,
    ) -> Result<()> {
        let (handles, scalars) = args.buffers_and_scalars(SLOT)?;
        let mut buffers = Vec::with_capacity(handles.len() + 1);
        for handle in handles {
            let space = Space(std::ptr::without_provenance_mut(handle as usize));
            let (id, buffer) = Vulkan::backend().memory(space)?;
            // DEV-51: a descriptor can only refer to a buffer of the same device, and Vulkan does not check this.
            if id != own {
                return reject(
                    DEV_51,
                    Kind::Type,
                    format!("memory of device {id} for a kernel on device {own}"),
                );
            }
            buffers.push(buffer);
        }
        let mut queue = on.queue();
        let storage = buffers.len();
        if pipeline.uniform {
            let uniform = on.staging(scalars.len())?;
            // SAFETY: the buffer is mapped and was made for these bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    scalars.as_ptr(),
                    uniform.mapped_bytes(),
                    scalars.len(),
                )
            };
            queue.keep(uniform);
            buffers.push(uniform);
        }
        // Each launch gets a new set, because a set in recorded work must not change before the work has run.
        let set = queue.descriptor_set(&on.device, pipeline.set_layout)?;
        let infos: Vec<[vk::DescriptorBufferInfo; 1]> = buffers
            .iter()
            .map(|buffer| {
                [vk::DescriptorBufferInfo {
                    buffer: buffer.handle,
                    offset: 0,
                    range: vk::WHOLE_SIZE,
                }]
            })
            .collect();
        let writes: Vec<vk::WriteDescriptorSet<'_>> = infos
            .iter()
            .enumerate()
            .map(|(binding, info)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding as u32)
                    .descriptor_type(descriptor_type(binding, storage))
                    .buffer_info(info)
            })
            .collect();
        let [x, y, z] = sizes.grid_u32();
        // SAFETY: the set is fresh, and everything named lives until the queue has run.
        unsafe { on.device.update_descriptor_sets(&writes, &[]) };
        queue.record(&on.device, |device, commands| {
            let (bind, layout) = (vk::PipelineBindPoint::COMPUTE, pipeline.layout);
            // SAFETY: `record` is recording; the pipeline stays until the queue has run.
            unsafe { device.cmd_bind_pipeline(commands, bind, pipeline.pipeline) };
            // SAFETY: `record` is recording; the pipeline stays until the queue has run, and the set is of the pipeline's
            // layout.
            unsafe { device.cmd_bind_descriptor_sets(commands, bind, layout, 0, &[set], &[]) };
            if !pipeline.uniform && !scalars.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                // SAFETY: `record` is recording, and the layout has the same number of bytes of constants.
                unsafe { device.cmd_push_constants(commands, layout, stage, 0, &scalars) };
            }
            // SAFETY: `record` is recording; the kernel is called as it was compiled (`LoadedCode::launch`).
            unsafe { device.cmd_dispatch(commands, x, y, z) };
        })
    }

    fn unload(
        on: &VulkanDevice,
        _: &mut Vec<SpirvShader>,
        kernels: impl Iterator<Item = Arc<VulkanPipeline>>,
    ) {
        // Recorded work may still use a pipeline. If the wait fails, the pipelines are leaked.
        if on.queue().sync(&on.device).is_err() {
            return;
        }
        for made in kernels {
            let device = &on.device;
            // SAFETY: made by `make`, and nothing uses it after the sync.
            unsafe { device.destroy_pipeline(made.pipeline, None) };
            // SAFETY: made by `make`, and nothing uses it after the sync.
            unsafe { device.destroy_pipeline_layout(made.layout, None) };
            // SAFETY: made by `make`, and nothing uses it after the sync.
            unsafe { device.destroy_descriptor_set_layout(made.set_layout, None) };
            // SAFETY: made by `make`, and nothing uses it after the sync.
            unsafe { device.destroy_shader_module(made.shader, None) };
        }
    }
}

/// Returns the kind of a binding. Bindings below `storage` are the kernel's buffers, and the next one contains the scalars.
fn descriptor_type(binding: usize, storage: usize) -> vk::DescriptorType {
    if binding < storage {
        vk::DescriptorType::STORAGE_BUFFER
    } else {
        vk::DescriptorType::UNIFORM_BUFFER
    }
}

/// Compiles a shader. Buffers are the bindings from 0 on, and the uniform buffer is the binding after them.
fn make(
    on: &VulkanDevice,
    kernel: &KernelDescription,
    shader: &SpirvShader,
) -> Result<VulkanPipeline> {
    let device = &on.device;
    let storage = kernel
        .arg_types
        .iter()
        .take_while(|of| **of == ArgType::Handle)
        .count();
    let scalars = kernel.arg_types.len() - storage;
    // Without scalars the flag is ignored, because an empty buffer cannot be bound.
    let uniform = shader.flags & 1 != 0 && scalars > 0;
    let bindings: Vec<vk::DescriptorSetLayoutBinding<'_>> = (0..storage + usize::from(uniform))
        .map(|binding| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(binding as u32)
                .descriptor_type(descriptor_type(binding, storage))
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let ranges = [vk::PushConstantRange {
        stage_flags: vk::ShaderStageFlags::COMPUTE,
        offset: 0,
        size: (scalars * SLOT) as u32,
    }];
    let pushes = if uniform || scalars == 0 {
        &ranges[..0]
    } else {
        &ranges[..]
    };
    // DEV-51: the compiler sets the flag if push constants are too small on its device; this device may have a lower limit.
    let most = on.properties.limits.max_push_constants_size;
    if !pushes.is_empty() && (scalars * SLOT) as u32 > most {
        let message = format!(
            "`{}` has {scalars} scalars of {SLOT} bytes, push constants hold {most} bytes",
            kernel.name
        );
        return reject(DEV_51, Kind::Limit, message);
    }
    let entry = c_name(kernel)?;
    let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the device is alive as long as the process, and the struct through the call; the same applies below.
    let set_layout = unsafe { device.create_descriptor_set_layout(&create, None) };
    let set_layout = Vulkan::checked("vkCreateDescriptorSetLayout", set_layout)?;
    let layouts = [set_layout];
    let create = vk::PipelineLayoutCreateInfo::default()
        .set_layouts(&layouts)
        .push_constant_ranges(pushes);
    // SAFETY: the device is alive as long as the process, and the structs through the call.
    let layout = unsafe { device.create_pipeline_layout(&create, None) };
    let layout = Vulkan::checked("vkCreatePipelineLayout", layout)?;
    let create = vk::ShaderModuleCreateInfo::default().code(&shader.words);
    // SAFETY: the device is alive as long as the process, and the struct through the call. The driver trusts SPIR-V, which
    // came with a library that is trusted (`launch`).
    let module = unsafe { device.create_shader_module(&create, None) };
    let module = Vulkan::checked("vkCreateShaderModule", module)?;
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(&entry);
    let create = [vk::ComputePipelineCreateInfo::default()
        .stage(stage)
        .layout(layout)];
    // SAFETY: the device is alive as long as the process, the structs through the call, and the shader and the layout were
    // just made.
    let pipelines =
        unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &create, None) };
    let pipelines = Vulkan::checked(
        format!("vkCreateComputePipelines `{}`", kernel.name),
        pipelines.map_err(|(_, code)| code),
    )?;
    Ok(VulkanPipeline {
        pipeline: pipelines.first().copied().unwrap_or_default(),
        layout,
        set_layout,
        shader: module,
        uniform,
    })
}
