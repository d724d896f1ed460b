// Errors that end a command with a sentence for the user, and without a stack.
import { getErrorCode } from '../../platform/error-code.ts';

/** Why the service cannot start: lines for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

interface Place {
  readonly host: string;
  readonly port: number;
  /** What to type for another port, where the user started this process. */
  readonly describeWithPort?: ((port: number) => string) | undefined;
}

/** The development provider of a gateway may have one of the ports that follow: the other gateway's is behind them. */
const NEXT_PORT = 10;
const HIGHEST_PORT = 65_535;

/** For a second gateway beside the one on this port. */
export const chooseOtherPort = (port: number): number =>
  port + NEXT_PORT > HIGHEST_PORT ? port - NEXT_PORT : port + NEXT_PORT;

/** Why the service cannot listen there, and what to set. */
export function describeListenError(
  error: unknown,
  { host, port, describeWithPort }: Place,
): string {
  switch (getErrorCode(error)) {
    case 'EADDRINUSE': {
      const other = chooseOtherPort(port);
      const typed = describeWithPort === undefined ? `PORT=${other}` : describeWithPort(other);
      return `PORT: port ${port} on ${host} is in use by another process. Stop that process, or choose another port: ${typed}`;
    }
    case 'EACCES':
      return `PORT: this process is not allowed to listen on port ${port}. Set PORT to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${getErrorCode(error) ?? String(error)}). Set HOST to an address of this machine.`;
  }
}

/** A command line that cannot be understood: a sentence for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** Whose help says more; undefined where the command is not known. */
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.command = command;
  }
}

/** Why a command did not do what it is for: a heading, and lines below it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly heading: string;
  readonly lines: readonly string[];

  /** `heading` ends with a colon. */
  constructor(heading: string, lines: readonly string[]) {
    super([heading, ...lines].join('\n'));
    this.heading = heading;
    this.lines = lines;
  }
}
