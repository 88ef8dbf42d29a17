"""The commands that serve: threads over HTTP, the inspector, MCP tools."""
