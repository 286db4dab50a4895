"""The OpenAI Agents SDK, with every model input fitted.

    config = RunConfig(call_model_input_filter=trimtab.openai_agents.input_filter())
    await Runner.run(agent, task, run_config=config)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

try:
    from agents.run import CallModelData, ModelInputData
except ImportError as missing:
    raise ImportError("trimtab.openai_agents needs the package openai-agents: pip install openai-agents") from missing

from trimtab._adapting import Sessions, fitted_anyway


def input_filter(**settings: Any) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return a filter for `RunConfig.call_model_input_filter`; the settings are those of `Session`."""
    sessions = Sessions({**settings, "format": "responses"})

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        items, instructions = list(data.model_data.input), data.model_data.instructions
        session = sessions.of(items, instructions, _model(data.agent))
        tools = [_definition(tool) for tool in getattr(data.agent, "tools", []) if hasattr(tool, "params_json_schema")]
        done = await asyncio.to_thread(
            fitted_anyway, lambda: session.fit(items, system=instructions, tools=tools or None)
        )
        return ModelInputData(input=done.messages, instructions=instructions)

    return fitted


def _model(agent: Any) -> str | None:
    model = getattr(agent, "model", None)
    return model if isinstance(model, str) else getattr(model, "model", None)


def _definition(tool: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
