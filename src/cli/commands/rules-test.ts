import { defineCommand } from '../command-line/command.ts';
import { JSON_OUTPUT } from '../command-line/options.ts';

export const rulesTestCommand = defineCommand({
  name: 'rules test',
  summary: 'say what a user sees by the rules, and which rule says so',
  description: [
    'Lists every tool, prompt and resource as the gateway would list it to the user whose claims are given, and names the rule that allows each. Nothing is called.',
  ],
  options: {
    config: {
      kind: 'text',
      value: 'FILE',
      summary: 'the file that has the rules',
      example: '--config mcp.json',
    },
    claims: {
      kind: 'text',
      value: 'FILE',
      summary: "the claims of the user's access token, as a JSON object",
      example: '--claims ann.json',
    },
    client: {
      kind: 'text',
      value: 'ID',
      summary: 'the OAuth client, where the claims do not name it',
      example: '--client cursor',
    },
    item: {
      kind: 'list',
      value: 'NAME',
      summary: 'ask about NAME alone: a tool, prompt:NAME or resource:URI; may be repeated',
      example: '--item github__search',
    },
    tool: {
      kind: 'text',
      value: 'NAME',
      summary: 'ask about a call of this tool',
      example: '--tool files__read_file',
    },
    args: {
      kind: 'text',
      value: 'JSON',
      summary: 'the arguments of that call',
      example: `--args '{"path": "/docs/a.txt"}'`,
    },
    annotations: {
      kind: 'text',
      value: 'JSON',
      summary: 'what a server says of --item or --tool, for example {"readOnlyHint": true}',
      example: `--annotations '{"readOnlyHint": true}'`,
    },
    json: JSON_OUTPUT,
  },
  examples: [
    {
      command: 'postern rules test --config mcp.json --claims ann.json',
      does: 'all that Ann sees',
    },
    {
      command: `postern rules test --config mcp.json --claims ann.json --tool files__read_file --args '{"path": "/docs/a.txt"}'`,
      does: 'whether she may make this call',
    },
  ],
  exitCode1: 'with --tool, also: the call is not allowed',
  run: async (options, _operands, invocation) =>
    (await import('../rules/test-rules.ts')).testRules(options, invocation),
});
