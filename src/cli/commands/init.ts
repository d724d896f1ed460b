import {
  choiceOption,
  defineCommand,
  flagOption,
  textOption,
  toggle,
} from '../command-line/command.ts';
import { PROVIDER_CHOICES } from '../init/providers.ts';

export const initCommand = defineCommand({
  name: 'init',
  summary: 'write what a new gateway needs: postern.yaml, .env, a first tool with its test',
  description: [
    'Asks where users log in, what the gateway serves and where it keeps sessions, writes the files into this folder, and says what to type next. What an option says is not asked. Files that exist are only overwritten with --force, or when you say so.',
  ],
  options: {
    yes: flagOption('ask nothing: options, and defaults for the rest'),
    force: flagOption('overwrite files that exist'),
    provider: choiceOption(
      'NAME',
      PROVIDER_CHOICES,
      'where users log in; dev is the provider of postern dev, with any name',
    ),
    issuer: textOption('URL', 'https://id.example.com', "the provider's issuer: OIDC_ISSUER"),
    clientId: textOption('ID', 'postern', 'the client that you registered there: OAUTH_CLIENT_ID'),
    clientSecret: textOption(
      'SECRET',
      '- <secret.txt',
      'its secret: OAUTH_CLIENT_SECRET; - reads it from standard input',
      { takesStandardInput: true },
    ),
    clientSecretFile: textOption(
      'FILE',
      'secret.txt',
      'a file with this secret: other users of the machine can read arguments',
      { standardInput: '--client-secret -' },
    ),
    tool: toggle(
      'write a first tool with its test (the default without --servers)',
      'write no tool',
    ),
    servers: textOption(
      'FILE',
      'mcp.json',
      'take over the MCP servers of FILE, such as the mcp.json of a desktop client, or the server.json of a registry; those with a url are asked whether they want a login',
    ),
    store: choiceOption('KIND', ['embedded', 'redis'], 'where sessions are kept'),
    redisUrl: textOption('URL', 'redis://localhost:6379', 'the address of Redis: REDIS_URL'),
  },
  examples: {
    'postern init': 'asks',
    'postern init --yes': 'a first tool, to try with the development provider',
    'postern init --yes --servers mcp.json':
      'the MCP servers of mcp.json, with their secrets in .env',
    'postern init --yes --provider keycloak --issuer https://id.example.com/realms/main --client-id postern':
      'for Keycloak; the secret is to be filled in',
  },
  run: async (options, _operands, invocation) =>
    (await import('../init/init.ts')).init(options, invocation),
});
