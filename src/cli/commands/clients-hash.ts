import { defineCommand, JSON_OUTPUT, textOption } from '../command-line/command.ts';

export const clientsHashCommand = defineCommand({
  name: 'clients hash',
  summary:
    'make a secret for a client that logs in as itself, and the hash for the configuration file',
  description: [
    'Makes a random secret and prints it once, with the hash that "secretSha256" of a client takes. The secret is kept nowhere: give it to the client. With --secret - or --secret-file the hash of a secret is printed that you already have; it must be a random one of at least 32 characters.',
  ],
  options: {
    secret: textOption('-', '- <secret.txt', 'hash the secret that standard input has', {
      takesStandardInput: true,
      findProblem: (given) =>
        given === '-'
          ? undefined
          : 'other users of the machine can read what stands here. Write - and pipe the secret in, or use --secret-file FILE.',
    }),
    secretFile: textOption('FILE', 'secret.txt', 'hash the secret in FILE', {
      standardInput: '--secret -',
    }),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern clients hash': 'a new secret, and its hash',
    'postern clients hash --secret - <secret.txt': 'the hash of a secret that you have',
  },
  run: async (options, _operands, invocation) =>
    (await import('../clients/hash-secret.ts')).hashSecret(options, invocation),
});
