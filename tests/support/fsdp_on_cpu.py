"""FSDP2 by accelerate's own ways in processes on a processor, which accelerate leaves to cards."""

from __future__ import annotations

ENVIRONMENT = {
    "ACCELERATE_USE_CPU": "true",
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer",
}
"""What `accelerate launch` sets for FSDP2; the form of the state dict is left as it is."""


def lacks() -> str | None:
    """What torch or accelerate have not that this needs; None where all is there."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from torch import distributed
    from torch.distributed import fsdp

    if not (distributed.is_available() and distributed.is_gloo_available()):
        return "torch has no gloo"
    if not hasattr(fsdp, "fully_shard"):
        return "torch has no FSDP2 (from 2.6 on)"
    if "fsdp_version" not in FullyShardedDataParallelPlugin.__dataclass_fields__:
        return "accelerate has no FSDP2 (from 1.6 on)"
    return None


def allow() -> None:
    """Let accelerate shard on a processor where the environment asks for FSDP."""
    from accelerate import state
    from accelerate.utils import DistributedType

    begin = state.AcceleratorState.__init__

    def begin_sharded(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        plugin = kwargs.get("fsdp_plugin")
        if plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, plugin
            state.PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    state.AcceleratorState.__init__ = begin_sharded
