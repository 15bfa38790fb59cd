"""A plug-in for Axolotl: five lines of its configuration watch forgetting while it trains.

```yaml
plugins: [forgetmap.mitigate.train.axolotl.ForgettingPlugin]
forgetmap:
  suite: atlas
  out: runs/probes
  every: 100
```
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from forgetmap.mitigate.train.callback import callback_by

try:
    from axolotl.integrations.base import BasePlugin
except ImportError:  # so that this module can be looked at without Axolotl
    BasePlugin = object


class ForgettingArgs(BaseModel):
    """What Axolotl lets a configuration say to the plug-in."""

    forgetmap: dict[str, Any] | None = None
    """The arguments of `ForgettingCallback`."""


class ForgettingPlugin(BasePlugin):  # type: ignore[misc]
    """Adds a `ForgettingCallback` to the trainer."""

    def get_input_args(self) -> str:
        """The class of the plug-in's settings, by its name."""
        return f"{__name__}.{ForgettingArgs.__name__}"

    def add_callbacks_post_trainer(self, cfg: Any, trainer: Any) -> list[Any]:
        """The callback, once there is a trainer that it can be attached to."""
        return [callback_by(cfg.get("forgetmap")).attach(trainer)]
