"""Tools of the agent: `@tool`, and those that come with Denizen."""

from denizen.tools.function import FunctionTool, tool
from denizen.tools.standard import default_tools, plugin_tools

__all__ = ["FunctionTool", "default_tools", "plugin_tools", "tool"]
