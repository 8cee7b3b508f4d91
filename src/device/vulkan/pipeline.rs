//! Kernels of Vulkan modules: one compute pipeline per SPIR-V shader.

use super::instance::Opened;
use super::{checked, vulkan};
use crate::device::error::refuse;
use crate::device::launch::{ArgType, Packed, WorkSizes};
use crate::device::module::{Driver, KernelInfo, Loaded};
use crate::device::{DEV_51, DEV_54, Device, Result, Space, Stream};
use crate::rule::Kind;
use ash::vk;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

/// A shader as the payload has it.
#[derive(Clone, Debug)]
pub(crate) struct Shader {
    /// The kernel's name, which is also the shader's entry point.
    pub name: String,
    /// Bit 0: scalars come through a uniform buffer instead of push constants.
    pub flags: u32,
    /// SPIR-V.
    pub words: Vec<u32>,
}

/// Code of a Vulkan module.
pub(crate) struct VulkanCode {
    /// One shader per kernel.
    pub shaders: Vec<Shader>,
}

impl Driver for VulkanCode {
    fn device_kind(&self) -> i32 {
        Device::vulkan(0).kind
    }

    fn load(&self, id: i32) -> Result<Arc<dyn Loaded>> {
        vulkan().inner.device(id)?;
        Ok(Arc::new(OnDevice {
            id,
            shaders: self.shaders.clone(),
            pipelines: Mutex::default(),
        }))
    }
}

/// The module on one device. Pipelines are made when their kernel is first launched.
struct OnDevice {
    id: i32,
    shaders: Vec<Shader>,
    pipelines: Mutex<HashMap<String, Pipeline>>,
}

#[derive(Clone, Copy)]
struct Pipeline {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set_layout: vk::DescriptorSetLayout,
    shader: vk::ShaderModule,
    uniform: bool,
}

/// Bytes of a scalar, since 0.8 (DEV-51).
const SLOT: usize = 8;

impl Loaded for OnDevice {
    unsafe fn launch(
        &self,
        kernel: &KernelInfo,
        args: &mut Packed,
        sizes: &WorkSizes,
        _: Stream,
    ) -> Result<()> {
        let inner = &vulkan().inner;
        let opened = inner.device(self.id)?;
        let (handles, scalars) = args.buffers_and_scalars(SLOT)?;
        let pipeline = self.pipeline(opened, kernel)?;
        let mut buffers = Vec::with_capacity(handles.len() + 1);
        for handle in handles {
            let space = Space(std::ptr::without_provenance_mut(handle as usize));
            let (id, buffer) = inner.buffer(space)?;
            if id != self.id {
                return refuse(
                    DEV_51,
                    Kind::Type,
                    format!("memory of device {id} for a kernel on device {}", self.id),
                );
            }
            buffers.push(buffer);
        }
        let mut queue = opened.queue();
        let storage = buffers.len();
        if pipeline.uniform {
            let uniform = opened.staging(scalars.len())?;
            // SAFETY: the buffer is mapped and was made for these bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    scalars.as_ptr(),
                    uniform.mapped.cast(),
                    scalars.len(),
                )
            };
            queue.keep(uniform);
            buffers.push(uniform);
        }
        let set = queue.descriptor_set(opened, pipeline.set_layout)?;
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
        let [x, y, z] = sizes
            .grid
            .map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
        // SAFETY: the set is fresh, and everything named lives until the queue has run.
        unsafe { opened.device.update_descriptor_sets(&writes, &[]) };
        queue.record(opened, |device, commands| {
            let (bind, layout) = (vk::PipelineBindPoint::COMPUTE, pipeline.layout);
            // SAFETY: `record` is recording; the pipeline stays until the queue has run.
            unsafe { device.cmd_bind_pipeline(commands, bind, pipeline.pipeline) };
            // SAFETY: `record` is recording; the pipeline stays until the queue has run, and the set is of the pipeline's
            // layout.
            unsafe { device.cmd_bind_descriptor_sets(commands, bind, layout, 0, &[set], &[]) };
            if !pipeline.uniform && !scalars.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                // SAFETY: `record` is recording; the layout was made for as many bytes of constants.
                unsafe { device.cmd_push_constants(commands, layout, stage, 0, &scalars) };
            }
            // SAFETY: `record` is recording; the kernel is given what it was compiled for, by the contract of this
            // function.
            unsafe { device.cmd_dispatch(commands, x, y, z) };
        })
    }
}

fn descriptor_type(binding: usize, storage: usize) -> vk::DescriptorType {
    if binding < storage {
        vk::DescriptorType::STORAGE_BUFFER
    } else {
        vk::DescriptorType::UNIFORM_BUFFER
    }
}

impl OnDevice {
    fn pipeline(&self, opened: &Opened, kernel: &KernelInfo) -> Result<Pipeline> {
        let mut pipelines = self
            .pipelines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = pipelines.get(&kernel.name) {
            return Ok(*made);
        }
        let Some(shader) = self
            .shaders
            .iter()
            .find(|shader| shader.name == kernel.name)
        else {
            return refuse(
                DEV_54,
                Kind::Missing,
                format!("the module has no shader for `{}`", kernel.name),
            );
        };
        let made = make(opened, kernel, shader)?;
        pipelines.insert(kernel.name.clone(), made);
        Ok(made)
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        let Ok(opened) = vulkan().inner.device(self.id) else {
            return;
        };
        // Recorded work may still name a pipeline.
        let _ = opened.queue().sync(opened);
        let pipelines = std::mem::take(
            &mut *self
                .pipelines
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for made in pipelines.into_values() {
            let device = &opened.device;
            // SAFETY: made by `make`, and nothing uses it after the sync; so below.
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

/// Compiles a shader: buffers are bindings 0 and up, the uniform buffer is the binding behind them.
fn make(opened: &Opened, kernel: &KernelInfo, shader: &Shader) -> Result<Pipeline> {
    let device = &opened.device;
    let storage = kernel
        .arg_types
        .iter()
        .take_while(|of| **of == ArgType::Handle)
        .count();
    let scalars = kernel.arg_types.len() - storage;
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
    let most = opened.properties.limits.max_push_constants_size;
    if !pushes.is_empty() && (scalars * SLOT) as u32 > most {
        let message = format!(
            "`{}` has {scalars} scalars of {SLOT} bytes, push constants hold {most} bytes",
            kernel.name
        );
        return refuse(DEV_51, Kind::Limit, message);
    }
    let Ok(entry) = CString::new(kernel.name.as_str()) else {
        let message = format!("no driver has a kernel called {:?}", kernel.name);
        return refuse(DEV_54, Kind::Malformed, message);
    };
    let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the device is alive as long as the process, and the struct through the call; so below.
    let set_layout = unsafe { device.create_descriptor_set_layout(&create, None) };
    let set_layout = checked("vkCreateDescriptorSetLayout", set_layout)?;
    let layouts = [set_layout];
    let create = vk::PipelineLayoutCreateInfo::default()
        .set_layouts(&layouts)
        .push_constant_ranges(pushes);
    // SAFETY: the device is alive as long as the process, and the structs through the call.
    let layout = unsafe { device.create_pipeline_layout(&create, None) };
    let layout = checked("vkCreatePipelineLayout", layout)?;
    let create = vk::ShaderModuleCreateInfo::default().code(&shader.words);
    // SAFETY: the device is alive as long as the process, and the struct through the call. The driver trusts SPIR-V, which
    // came with a library that is trusted (`launch`).
    let module = unsafe { device.create_shader_module(&create, None) };
    let module = checked("vkCreateShaderModule", module)?;
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
    let pipelines = checked(
        &format!("vkCreateComputePipelines `{}`", kernel.name),
        pipelines.map_err(|(_, code)| code),
    )?;
    Ok(Pipeline {
        pipeline: pipelines.first().copied().unwrap_or_default(),
        layout,
        set_layout,
        shader: module,
        uniform,
    })
}
