// Errors that end a command with a message for the user, without a stack.

import { ConfigError } from '../../config/problem.ts';
import { DefinitionError } from '../../errors/gateway-error.ts';
import { LockFileError } from '../../lock/lock-file.ts';
import { describeCode, getErrorCode } from '../../platform/error-code.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import type { Invocation } from './invocation.ts';

/** A reason why the service cannot start, as lines for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(...lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The gateway's development provider may use one of the next ports, so a second gateway gets a port beyond them. */
const NEXT_PORT = 10;
const HIGHEST_PORT = 65_535;

/** The port to suggest for a second gateway, if the first one uses this port. */
export const chooseOtherPort = (port: number): number =>
  port + NEXT_PORT > HIGHEST_PORT ? port - NEXT_PORT : port + NEXT_PORT;

/**
 * The reason why the service cannot listen, and the setting to change. `describeWithPort` returns the command line for another
 * port, if the user started this process.
 */
export function describeListenError(
  error: unknown,
  server: {
    readonly host: string;
    readonly port: number;
    readonly metricsPort?: number | undefined;
  },
  describeWithPort?: (port: number) => string,
): string {
  const { host, metricsPort } = server;
  const isOfMetrics = error instanceof Error && 'port' in error && error.port === metricsPort;
  const [name, port] =
    isOfMetrics && metricsPort !== undefined
      ? ['METRICS_PORT', metricsPort]
      : ['PORT', server.port];
  switch (getErrorCode(error)) {
    case 'EADDRINUSE': {
      const other = chooseOtherPort(port);
      const typed =
        describeWithPort === undefined || isOfMetrics
          ? `${name}=${other}`
          : describeWithPort(other);
      return `${name}: port ${port} on ${host} is in use by another process. Stop that process, or choose another port: ${typed}`;
    }
    case 'EACCES':
      return `${name}: this process is not allowed to listen on port ${port}. Set ${name} to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${describeCode(error)}). Set HOST to an address of this machine.`;
  }
}

/** An invalid command line, as a sentence for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** The command whose help to suggest; undefined if the command is unknown. */
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.command = command;
  }
}

/** A failure of a command: a heading, and lines below it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly heading: string;
  readonly lines: readonly string[];

  /** `heading` ends with a colon. */
  constructor(heading: string, ...lines: readonly string[]) {
    super([heading, ...lines].join('\n'));
    this.heading = heading;
    this.lines = lines;
  }
}

/** Prints the error and ends the process: with exit code 2 for an invalid command line, otherwise 1. */
export function endWithError(error: unknown, { process, console }: Invocation): void {
  // Messages quote files from others, so terminal control characters are escaped.
  console.error(escapeInvisible(describeError(error).join('\n')));
  // Only Node.js knows the position of a syntax error, and it prints the position of an uncaught error.
  if (error instanceof SyntaxError)
    queueMicrotask(() => {
      throw error;
    });
  else process.exit(error instanceof UsageError ? 2 : 1);
}

function describeError(error: unknown) {
  if (error instanceof UsageError) {
    const { message, command } = error;
    // The full help would scroll the message off the screen.
    const help =
      command === undefined
        ? 'postern --help lists all commands.'
        : `postern ${command} --help lists its options, with examples.`;
    return [message, help];
  }
  if (error instanceof ConfigError) return ['Invalid settings:', ...formatBullets(error.problems)];
  if (error instanceof CommandError) return [error.heading, ...formatBullets(error.lines)];
  if (error instanceof LockFileError) return ['The lock cannot be used:', `  - ${error.message}`];
  if (error instanceof DefinitionError) return ['Postern cannot start:', `  - ${error.message}`];
  if (error instanceof StartError) return ['Postern cannot start:', ...formatBullets(error.lines)];
  if (error instanceof SyntaxError) return ['Postern cannot start because of a syntax error:'];
  return ['Postern cannot start because of an unexpected error:', `  - ${String(error)}`];
}

function formatBullets(lines: readonly string[]) {
  return lines.map((line) => `  - ${line}`);
}
