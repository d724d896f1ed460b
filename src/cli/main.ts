#!/usr/bin/env node
import { ConfigError } from '../core/config/load.ts';
import { DefinitionError } from '../core/errors/definition-error.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../core/version.ts';
import { StartError } from './start-error.ts';

const USAGE = `Usage: ${PACKAGE_NAME} [command]

  start       run the service; settings are environment variables (this is the default)
  dev         run it with an embedded store and an identity provider for development
  --version   print the version
  --help      print this
`;

/** Each command is loaded when it is asked for: start needs nothing of dev. */
const commands = new Map<string, () => Promise<void>>([
  ['start', async () => (await import('./start.ts')).start()],
  ['dev', async () => (await import('./dev.ts')).dev()],
  ['--version', async () => console.log(PACKAGE_VERSION)],
  ['--help', async () => console.log(USAGE)],
]);

const [name = 'start', ...rest] = process.argv.slice(2);
const command = rest.length === 0 ? commands.get(name) : undefined;
if (command === undefined) {
  console.error(`Unknown command: ${[name, ...rest].join(' ')}\n\n${USAGE}`);
  process.exit(2);
}
command().catch((error: unknown) => {
  console.error(explain(error).join('\n'));
  process.exit(1);
});

function explain(error: unknown): readonly string[] {
  if (error instanceof ConfigError)
    return ['The settings are not right:', ...bullets(error.problems)];
  if (error instanceof DefinitionError) return ['Postern cannot start:', `  - ${error.message}`];
  if (error instanceof StartError) return ['Postern cannot start:', ...bullets(error.lines)];
  return ['Postern failed to start; this should not happen:', String(error)];
}

function bullets(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  - ${line}`);
}
