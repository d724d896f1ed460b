/** Why the service cannot start: lines for the operator, no stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The code by which Node and the system name an error, such as `EADDRINUSE`. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** Why nothing can listen there, and what to set. */
export function listenProblem(error: unknown, host: string, port: number): string {
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `PORT: ${port} on ${host} is taken by another process. Stop it, or set PORT to a free one.`;
    case 'EACCES':
      return `PORT: ${port} needs more rights than this process has. Set PORT to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${codeOf(error) ?? String(error)}). Set HOST to an address of this machine.`;
  }
}
