import { defineCommand, flagOption, JSON_OUTPUT, textOption } from '../command-line/command.ts';

export const configCommand = defineCommand({
  name: 'config',
  summary: 'print the effective settings, where each comes from, and what is wrong with them',
  description: [
    'Prints what postern start would run with: the settings that are set, the configuration file, and every problem. Nothing is started or connected, except with --lists. Of secrets it prints a fingerprint, by which two machines can be compared.',
  ],
  options: {
    lists: flagOption(
      'also ask the servers what they list, and say what each list of tools costs a model; this starts those that are programs',
    ),
    all: flagOption('also the settings that have their default'),
    config: textOption('FILE', 'postern.yaml', 'the configuration file, instead of POSTERN_CONFIG'),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern config': 'what is set, and where',
    'postern config --all': 'every setting',
    'postern config --lists --config mcp.json': 'about how many tokens the tools of each path are',
    'postern config --json --config postern.yaml':
      'in a pipeline: fail if the gateway could not start with these',
  },
  exitCode1: 'something is wrong, and postern start would not start',
  run: async (options, _operands, invocation) =>
    (await import('../config/config.ts')).showConfig(options, invocation),
});
