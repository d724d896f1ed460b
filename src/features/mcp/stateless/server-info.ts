import type { ServiceInfo } from '../catalog/catalog.ts';

/** MCP 2026-07-28: the member of every result's `_meta` that says whose it is. */
export const serverInfoOf = ({ name, version }: ServiceInfo) => ({
  'io.modelcontextprotocol/serverInfo': { name, version },
});
