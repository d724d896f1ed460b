import { defineCommand } from '../command-line/command.ts';
import { CATALOG, CONFIG, PORT } from '../command-line/options.ts';

export const devCommand = defineCommand({
  name: 'dev',
  summary: 'run it for development: anybody can log in, with any name',
  description: [
    'Starts the gateway with the embedded store, limits that nobody reaches by hand and, unless OIDC_ISSUER is set, an identity provider that accepts any name.',
  ],
  options: {
    catalog: CATALOG,
    config: CONFIG,
    port: PORT,
    watch: { kind: 'flag', summary: 'restart when the code of the catalogue changes' },
  },
  examples: [
    { command: 'postern dev', does: 'with the built-in tools, on http://localhost:3000' },
    { command: 'postern dev --config mcp.json', does: 'with the MCP servers of mcp.json' },
    {
      command: 'postern dev --catalog catalog.mjs --watch',
      does: 'with tools of your own, and again after each change',
    },
  ],
  async run(options) {
    if (options.watch)
      await (await import('../watch/watch.ts')).watch(process.argv.slice(2), options);
    else await (await import('../dev.ts')).dev(options);
  },
});
