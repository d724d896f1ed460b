import { defineCommand, JSON_OUTPUT, listOption, textOption } from '../command-line/command.ts';

export const rulesTestCommand = defineCommand({
  name: 'rules test',
  summary: 'say what a user sees by the rules, and which rule says so',
  description: [
    'Lists every tool, prompt and resource as the gateway would list it to the user whose claims are given, and names the rule that allows each. Nothing is called.',
  ],
  options: {
    config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
    claims: textOption('FILE', 'ann.json', 'the claims of the user, as a JSON object'),
    client: textOption('ID', 'cursor', 'the OAuth client, where the claims do not name it'),
    view: textOption('NAME', 'research', 'ask at this view of the file: only what it has'),
    item: listOption(
      'NAME',
      'github__search',
      'ask about NAME alone: a tool, prompt:NAME or resource:URI; may be repeated',
    ),
    tool: textOption('NAME', 'files__read_file', 'ask about a call of this tool'),
    args: textOption('JSON', `'{"path": "/docs/a.txt"}'`, 'the arguments of that call'),
    annotations: textOption(
      'JSON',
      `'{"readOnlyHint": true}'`,
      'what a server says of --item or --tool, for example {"readOnlyHint": true}',
    ),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern rules test --config mcp.json --claims ann.json': 'all that Ann sees',
    'postern rules test --config mcp.json --claims ann.json --tool files__read_file --args \'{"path": "/docs/a.txt"}\'':
      'whether she may make this call',
  },
  exitCode1: 'with --tool, also: the call is not allowed',
  run: async (options, _operands, invocation) =>
    (await import('../rules/test-rules.ts')).testRules(options, invocation),
});
