import { CATALOG, CONFIG, defineCommand, PORT } from '../command-line/command.ts';

export const startCommand = defineCommand({
  name: 'start',
  summary: 'run the gateway (the default)',
  description: [
    'Settings are environment variables. The file .env in the current folder fills in what the environment does not set.',
    'A change of the configuration file or its lock is loaded while the gateway runs.',
  ],
  options: { catalog: CATALOG, config: CONFIG, port: PORT },
  examples: {
    'postern start': 'with the settings of the environment and of .env',
    'postern start --config postern.yaml --port 8080':
      'with the MCP servers of postern.yaml, on port 8080',
    'postern start --catalog catalog.mjs': 'with tools of your own',
  },
  run: async (options) => (await import('../serve/start.ts')).start(options),
});
