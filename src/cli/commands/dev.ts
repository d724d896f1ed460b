import { CATALOG, CONFIG, defineCommand, PORT, toggle } from '../command-line/command.ts';

export const devCommand = defineCommand({
  name: 'dev',
  summary: 'run it for development: anybody can log in, with any name',
  description: [
    'Starts the gateway with the embedded store, limits that nobody reaches by hand and, unless OIDC_ISSUER is set, an identity provider that accepts any name.',
    'It starts again after a change of .env or, with a catalogue of your own, of code in the folder of that file. Sessions survive, and so do logins until they are renewed, at most an hour later (OAUTH_RENEWAL_SECONDS): the identity provider starts anew, too. Where a change cannot be loaded, it waits for the next one. The configuration file and its lock are loaded anew while it runs.',
  ],
  options: {
    catalog: CATALOG,
    config: CONFIG,
    port: PORT,
    watch: toggle('start again after a change (the default)', 'do not start again by itself'),
  },
  examples: {
    'postern dev': 'with the built-in tools, on http://localhost:3000',
    'postern dev --config mcp.json': 'with the MCP servers of mcp.json',
    'postern dev --catalog catalog.mjs': 'with tools of your own, and again after each change',
    'AUTH_REQUIRED=false postern dev': 'without login, for a first call with curl',
  },
  async run(options) {
    const { isWatched, watch } = await import('../dev/watch.ts');
    if (options.watch === false || isWatched()) await (await import('../dev/dev.ts')).dev(options);
    else await watch(options);
  },
});
