import { getErrorCode } from '../core/errors/error-code.ts';

/** Why the service cannot start: lines for the operator, no stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** Why the service cannot listen there, and what to set. */
export function describeListenError(error: unknown, host: string, port: number): string {
  switch (getErrorCode(error)) {
    case 'EADDRINUSE':
      return `PORT: port ${port} on ${host} is in use by another process. Stop that process, or choose a free port with PORT or --port.`;
    case 'EACCES':
      return `PORT: this process is not allowed to listen on port ${port}. Set PORT to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${getErrorCode(error) ?? String(error)}). Set HOST to an address of this machine.`;
  }
}
