#include "doctor/views/known_keys.h"

#include <algorithm>

#include "base/text.h"

namespace phalanx::doctor {
namespace {

constexpr std::string_view kAccelerate =
    "additional_args base_job_name command_file commands compute_environment debug deepspeed_config distributed_type "
    "downcast_bf16 dynamo_backend dynamo_config ec2_instance_type enable_cpu_affinity fp16 fp8_config fsdp_config gpu_ids "
    "iam_role_name image_uri ipex_config machine_rank main_process_ip main_process_port main_training_function megatron_lm_config "
    "mixed_precision mpirun_config num_machines num_processes parallelism_config profile py_version pytorch_version rdzv_backend "
    "region sagemaker_inputs_file sagemaker_metrics_file same_network tp_config tpu_env tpu_name tpu_use_cluster tpu_use_sudo "
    "tpu_vm tpu_zone transformers_version use_cpu";

constexpr std::string_view kAccelerateDeepspeed =
    "deepspeed_config_file deepspeed_exclusion_filter deepspeed_hostfile deepspeed_inclusion_filter deepspeed_moe_layer_cls_names "
    "deepspeed_multinode_launcher gradient_accumulation_steps gradient_clipping offload_optimizer_device "
    "offload_optimizer_nvme_path offload_param_device offload_param_nvme_path zero3_init_flag zero3_save_16bit_model zero_stage";

constexpr std::string_view kDeepspeed =
    "activation_checkpointing aio allgather_size amp autotuning bf16 bfloat16 checkpoint checkpoint_engine comet comms_logger "
    "communication_data_type compile compression_training csv_monitor curriculum_learning data_efficiency data_parallel_size "
    "data_types dataloader_drop_last disable_allgather domino dump_state eigenvalue elasticity flops_profiler fp16 fp32_allreduce "
    "gradient_accumulation_steps gradient_clipping gradient_predivide_factor graph_harvesting hybrid_engine legacy_fusion "
    "load_from_fp32_weights max_grad_norm memory_breakdown model_parallel_size monitor_config nebula optimizer pipeline "
    "prescale_gradients progressive_layer_drop quantize_training scheduler seq_parallel_comm_data_type "
    "seq_parallel_communication_data_type sequence_parallel_size sparse_attention sparse_gradients steps_per_print superoffload "
    "tensor_parallel tensorboard timers torch_autocast train_batch_size train_micro_batch_size_per_gpu train_steps "
    "use_data_before_expert_parallelism vocabulary_size wall_clock_breakdown wandb weight_quantization "
    "zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization zero_quantized_weights";

constexpr std::string_view kDeepspeedZero =
    "allgather_bucket_size allgather_partitions allgather_sequential contiguous_gradients cpu_offload cpu_offload_param "
    "cpu_offload_params cpu_offload_use_pin_memory elastic_checkpoint enable_sanity_checks fast_sharding_for_leaf_module "
    "gather_16bit_weights_on_model_save grad_hooks ignore_unused_parameters leaf_module legacy_stage1 load_from_fp32_weights "
    "log_trace_cache_warnings max_live_parameters max_reuse_distance memory_efficient_linear mics_hierarchical_params_gather "
    "mics_shard_size model_persistence_threshold module_granularity_threshold offload_optimizer offload_param overlap_comm "
    "override_module_apply param_persistence_threshold partition_stream_chunk_size pipeline_loading_checkpoint "
    "prefetch_bucket_size reduce_bucket_size reduce_scatter round_robin_gradients save_muon_momentum_buffer_in_memory stage "
    "stage3_allgather_sequential stage3_gather_16bit_weights_on_model_save stage3_gather_fp16_weights_on_model_save "
    "stage3_max_live_parameters stage3_max_reuse_distance stage3_model_persistence_threshold stage3_module_granularity_threshold "
    "stage3_param_persistence_threshold stage3_partition_stream_chunk_size stage3_prefetch_bucket_size "
    "stage3_use_all_reduce_for_fetch_params sub_group_size use_all_reduce_for_fetch_params use_multi_rank_bucket_allreduce "
    "zenflow zero_hpz_partition_size zero_quantized_gradients zero_quantized_nontrainable_weights zero_quantized_weights "
    "zeropp_loco_param";

constexpr std::string_view kLlamaFactory =
    "accelerator_config adafactor adam_beta1 adam_beta2 adam_epsilon adapter_folder adapter_name_or_path add_special_tokens "
    "add_tokens additional_target apollo_layerwise apollo_proj apollo_proj_type apollo_rank apollo_scale apollo_scale_front "
    "apollo_scale_type apollo_target apollo_update_interval asft_alpha audio_sampling_rate auto_find_batch_size "
    "average_tokens_across_devices badam_mask_mode badam_mode badam_start_block badam_switch_interval badam_switch_mode "
    "badam_update_ratio badam_verbose batch_eval_metrics bf16 bf16_full_eval block_diag_attn buffer_size cache_dir "
    "compute_accuracy compute_dtype create_new_adapter crop_to_patches cutoff_len data_seed data_shared_file_system "
    "dataloader_drop_last dataloader_num_workers dataloader_persistent_workers dataloader_pin_memory dataloader_prefetch_factor "
    "dataset dataset_dir ddp_backend ddp_broadcast_buffers ddp_bucket_cap_mb ddp_find_unused_parameters ddp_timeout debug "
    "deepspeed default_system device_map disable_gradient_checkpointing disable_shuffling disable_tqdm dispatch_batches do_eval "
    "do_predict do_sample do_train double_quantization dpo_label_smoothing eaft_alpha early_stopping_steps efficient_packing "
    "enable_jit_checkpoint enable_liger_kernel enable_thinking enable_torch_profiler eval_accumulation_steps eval_dataset "
    "eval_delay eval_do_concat_batches eval_num_beams eval_on_each_dataset eval_on_start eval_steps eval_strategy "
    "eval_use_gather_object evaluation_strategy export_device export_dir export_hub_model_id export_legacy_format "
    "export_lora_merge export_quantization_bit export_quantization_dataset export_quantization_maxlen "
    "export_quantization_nsamples export_size finetuning_type flash_attn fp16 fp16_backend fp16_full_eval fp16_opt_level fp8 "
    "fp8_backend fp8_enable_fsdp_float8_all_gather freeze_extra_modules freeze_language_model freeze_multi_modal_projector "
    "freeze_trainable_layers freeze_trainable_modules freeze_vision_tower fsdp fsdp_config fsdp_min_num_params "
    "fsdp_transformer_layer_cls_to_wrap full_determinism galore_layerwise galore_proj_type galore_rank galore_scale galore_target "
    "galore_update_interval generation_config generation_max_length generation_num_beams gradient_accumulation_steps "
    "gradient_checkpointing gradient_checkpointing_kwargs greater_is_better group_by_length half_precision_backend hf_hub_token "
    "hub_always_push hub_model_id hub_private_repo hub_revision hub_strategy hub_token hyper_parallel_args hyper_parallel_cp_size "
    "ignore_data_skip ignore_pad_token_for_loss image_do_pan_and_scan image_max_pixels image_min_pixels image_resolution "
    "include_effective_tokens_per_second include_for_metrics include_inputs_for_metrics include_num_input_tokens_seen "
    "include_tokens_per_second infer_backend infer_dtype init_special_tokens interleave_probs jit_mode_eval kt_weight_path "
    "kto_chosen_weight kto_rejected_weight label_names label_smoothing_factor ld_alpha learning_rate length_column_name "
    "length_penalty liger_kernel_config load_best_model_at_end local_rank log_level log_level_replica log_on_each_node "
    "logging_dir logging_first_step logging_nan_inf_filter logging_steps logging_strategy lora_alpha lora_bf16_mode lora_dropout "
    "lora_rank lora_target loraplus_lr_embedding loraplus_lr_ratio low_cpu_mem_usage lr_scheduler_kwargs lr_scheduler_type "
    "mask_history master_addr master_port max_grad_norm max_length max_new_tokens max_samples max_steps media_dir "
    "megatron_bridge_args metric_for_best_model mix_strategy mixture_of_depths model_max_length model_name_or_path model_revision "
    "module_dropout moe_aux_loss_coef mp_parameters ms_hub_token name_module_trainable neat_packing neftune_noise_alpha "
    "new_special_tokens new_special_tokens_config no_cuda num_beams num_layer_trainable num_train_epochs offload_folder "
    "oft_block_size oft_rank oft_target om_hub_token optim optim_args optim_target_modules output_dir overwrite_cache "
    "overwrite_output_dir packing parallelism_config past_index per_device_eval_batch_size per_device_train_batch_size "
    "per_gpu_eval_batch_size per_gpu_train_batch_size pissa_convert pissa_init pissa_iter placement_strategy plot_loss "
    "ppo_buffer_size ppo_epochs ppo_score_norm ppo_target ppo_whiten_rewards predict_with_generate prediction_loss_only "
    "pref_bco_weight pref_beta pref_ftx pref_loss preprocessing_batch_size preprocessing_num_workers preserve_thinking "
    "print_param_status profile_modules profiler_active_steps profiler_output_dir profiler_profile_memory profiler_record_shapes "
    "profiler_repeat profiler_wait_steps profiler_warmup_steps profiler_with_stack project pure_bf16 push_to_hub "
    "push_to_hub_model_id push_to_hub_organization push_to_hub_token quantization_bit quantization_device_map quantization_method "
    "quantization_type ray_init_kwargs ray_num_workers ray_run_name ray_scope ray_storage_filesystem ray_storage_path ref_model "
    "ref_model_adapters ref_model_quantization_bit remove_unused_columns repetition_penalty report_to reserved_label_len "
    "resize_vocab resources_per_worker restore_callback_states_from_checkpoint resume_from_checkpoint reward_model "
    "reward_model_adapters reward_model_quantization_bit reward_model_type rope_scaling run_name save_on_each_node "
    "save_only_model save_safetensors save_steps save_strategy save_total_limit seed sft_packing sglang_config "
    "sglang_lora_backend sglang_maxlen sglang_mem_fraction sglang_tp_size shift_attn simpo_gamma skip_memory_metrics "
    "skip_special_tokens sortish_sampler split_batches split_special_tokens stage streaming streaming_buffer_size swanlab_api_key "
    "swanlab_lark_secret swanlab_lark_webhook_url swanlab_logdir swanlab_mode swanlab_project swanlab_run_name swanlab_workspace "
    "temperature template tf32 tokenized_path tokenizer_name tool_format top_k top_p torch_compile torch_compile_backend "
    "torch_compile_mode torch_empty_cache_steps torchdynamo tpu_metrics_debug tpu_num_cores trackio_space_id train_from_scratch "
    "train_mm_proj_only train_on_prompt train_sampling_strategy train_type trust_remote_code upcast_layernorm "
    "upcast_lmhead_output use_adam_mini use_apollo use_asft_loss use_audio_in_video use_badam use_cache use_cpu use_dft_loss "
    "use_dora use_eaft_loss use_fast_tokenizer use_galore use_hyper_parallel use_ipex use_kt use_kv_cache "
    "use_legacy_prediction_loop use_liger_kernel use_llama_pro use_mca use_megatron_bridge use_mps_device use_muon "
    "use_reentrant_gc use_rslora use_swanlab use_unsloth use_unsloth_gc use_v1_kernels val_size video_fps video_max_pixels "
    "video_maxlen video_min_pixels video_resolution visual_inputs vllm_config vllm_enforce_eager vllm_gpu_util vllm_max_lora_rank "
    "vllm_maxlen warmup_ratio warmup_steps weight_decay xpu_backend";

std::vector<std::string> names(std::string_view table) {
  std::vector<std::string> all;
  for (std::string_view word : base::split_words(table)) all.emplace_back(word);
  return all;
}

}  // namespace

std::vector<std::string> accelerate_keys() { return names(kAccelerate); }
std::vector<std::string> accelerate_deepspeed_keys() { return names(kAccelerateDeepspeed); }
std::vector<std::string> deepspeed_keys() { return names(kDeepspeed); }
std::vector<std::string> deepspeed_zero_keys() { return names(kDeepspeedZero); }
std::vector<std::string> llamafactory_keys() { return names(kLlamaFactory); }

std::vector<Misspelt> misspelt_keys(const base::Json& object, const std::vector<std::string>& known) {
  std::vector<Misspelt> found;
  if (!object.is_object()) return found;
  for (auto it = object.begin(); it != object.end() && found.size() < 16; ++it) {
    if (std::find(known.begin(), known.end(), it.key()) != known.end()) continue;
    if (auto near = base::closest(it.key(), known)) found.push_back({it.key(), *near});
  }
  return found;
}

}  // namespace phalanx::doctor
