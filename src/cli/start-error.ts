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

/** Why nothing can listen there, and what to set. */
export function listenProblem(error: unknown, host: string, port: number): string {
  switch (getErrorCode(error)) {
    case 'EADDRINUSE':
      return `PORT: ${port} on ${host} is taken by another process. Stop it, or set PORT to a free one.`;
    case 'EACCES':
      return `PORT: ${port} needs more rights than this process has. Set PORT to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${getErrorCode(error) ?? String(error)}). Set HOST to an address of this machine.`;
  }
}
