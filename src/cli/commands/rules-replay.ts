import { defineCommand, JSON_OUTPUT, listOption, textOption } from '../command-line/command.ts';

export const rulesReplayCommand = defineCommand({
  name: 'rules replay',
  summary: 'say what the rules would have done with the calls of an audit log',
  description: [
    'Judges each call of the audit log by the rules of the configuration file, and prints which it would refuse that were allowed, and which it would allow that were refused; then what each rule allowed that somebody used. No server is asked, and nothing is called.',
    'Of arguments the log has nothing, and of groups and claims what AUDIT_CLAIMS=true made the gateway write. Where a rule needs more than that, it is said that nobody can tell.',
  ],
  options: {
    audit: listOption(
      'FILE',
      'audit.log',
      'what AUDIT_LOG wrote, also gzipped; may be repeated. - reads standard input',
      { takesStandardInput: true },
    ),
    config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern rules replay --audit audit.log --config changed.json':
      'what a changed file would have done',
    'postern rules replay --audit audit.log.1.gz --audit audit.log --config mcp.json':
      'what was used of all that the rules allow',
  },
  run: async (options, _operands, invocation) =>
    (await import('../replay/replay.ts')).replay(options, invocation),
});
