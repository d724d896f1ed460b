import { defineCommand } from '../command-line/command.ts';
import { JSON_OUTPUT } from '../command-line/options.ts';

export const configCommand = defineCommand({
  name: 'config',
  summary: 'print the effective settings, where each comes from, and what is wrong with them',
  description: [
    'Prints what postern start would run with: the settings that are set, the configuration file, and every problem. Nothing is started or connected. Of secrets it prints a fingerprint, by which two machines can be compared.',
  ],
  options: {
    all: { kind: 'flag', summary: 'also the settings that have their default' },
    config: {
      kind: 'text',
      value: 'FILE',
      summary: 'the configuration file, instead of POSTERN_CONFIG',
      example: '--config postern.yaml',
    },
    json: JSON_OUTPUT,
  },
  examples: [
    { command: 'postern config', does: 'what is set, and where' },
    { command: 'postern config --all', does: 'every setting' },
    {
      command: 'postern config --json --config postern.yaml',
      does: 'in a pipeline: fail if the gateway could not start with these',
    },
  ],
  exitCode1: 'something is wrong, and postern start would not start',
  run: async (options, _operands, invocation) =>
    (await import('../config/config.ts')).showConfig(options, invocation),
});
