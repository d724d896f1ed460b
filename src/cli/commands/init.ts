import { defineCommand } from '../command-line/command.ts';
import { PROVIDER_CHOICES } from '../init/providers.ts';

export const initCommand = defineCommand({
  name: 'init',
  summary: 'write what a new gateway needs: postern.yaml, .env, a first tool with its test',
  description: [
    'Asks where users log in, what the gateway serves and where it keeps sessions, writes the files into this folder, and says what to type next. What an option says is not asked. Files that exist are only overwritten with --force, or when you say so.',
  ],
  options: {
    yes: { kind: 'flag', summary: 'ask nothing: options, and defaults for the rest' },
    force: { kind: 'flag', summary: 'overwrite files that exist' },
    provider: {
      kind: 'choice',
      value: 'NAME',
      choices: PROVIDER_CHOICES,
      summary: 'where users log in; dev is the provider of postern dev, with any name',
    },
    issuer: {
      kind: 'text',
      value: 'URL',
      summary: "the provider's issuer: OIDC_ISSUER",
      example: '--issuer https://id.example.com',
    },
    clientId: {
      kind: 'text',
      value: 'ID',
      summary: 'the client that you registered there: OAUTH_CLIENT_ID',
      example: '--client-id postern',
    },
    clientSecret: {
      kind: 'text',
      value: 'SECRET',
      summary: 'its secret: OAUTH_CLIENT_SECRET; - reads it from standard input',
      example: '--client-secret - <secret.txt',
      takesStandardInput: true,
    },
    clientSecretFile: {
      kind: 'text',
      value: 'FILE',
      summary: 'a file with this secret: other users of the machine can read arguments',
      example: '--client-secret-file secret.txt',
      standardInput: '--client-secret -',
    },
    tool: {
      kind: 'switch',
      summary: 'write a first tool with its test (the default without --servers)',
      negatedSummary: 'write no tool',
    },
    servers: {
      kind: 'text',
      value: 'FILE',
      summary: 'take over the MCP servers of FILE, such as the mcp.json of a desktop client',
      example: '--servers mcp.json',
    },
    store: {
      kind: 'choice',
      value: 'KIND',
      choices: ['embedded', 'redis'],
      summary: 'where sessions are kept',
    },
    redisUrl: {
      kind: 'text',
      value: 'URL',
      summary: 'the address of Redis: REDIS_URL',
      example: '--redis-url redis://localhost:6379',
    },
  },
  examples: [
    { command: 'postern init', does: 'asks' },
    { command: 'postern init --yes', does: 'a first tool, to try with the development provider' },
    {
      command: 'postern init --yes --servers mcp.json',
      does: 'the MCP servers of mcp.json, with their secrets in .env',
    },
    {
      command:
        'postern init --yes --provider keycloak --issuer https://id.example.com/realms/main --client-id postern',
      does: 'for Keycloak; the secret is to be filled in',
    },
  ],
  run: async (options, _operands, invocation) =>
    (await import('../init/init.ts')).init(options, invocation),
});
