/** Explains the error in one sentence that says what to do. */
export function explainError(error: unknown, { href, protocol }: URL): string {
  const messages = listMessages(error);
  const failed = findUnreachableOrigin(error);
  if (failed !== undefined && failed !== new URL(href).origin) {
    return `Nothing answers at ${failed}, where the login continues. Is the provider running?`;
  }
  const known = REASONS.find(([sign]) => messages.some((message) => sign.test(message)));
  if (known !== undefined) return known[1](href);
  if (protocol === 'https:' && messages.some((message) => /SSL|TLS|wrong version/i.test(message))) {
    return `${href} does not use TLS. Try http://.`;
  }
  return `The demo failed: ${messages.join(': ').slice(0, 500)}`;
}

const REASONS: readonly (readonly [sign: RegExp, reason: (href: string) => string])[] = [
  [
    /ECONNREFUSED|ENOTFOUND/,
    (href) =>
      `Nothing answers at ${href}: start the gateway with npm run dev in another terminal. If it has a different port, name its address: npm run demo http://localhost:3010`,
  ],
  [
    /Unexpected content type|^(404|405)$/,
    (href) =>
      `What answers at ${href} is no MCP server: another program has this port. Name the address of the gateway, which postern dev prints: npm run demo http://localhost:3010`,
  ],
  [
    /rate_limit_exceeded|Too Many Requests/,
    () =>
      'The gateway has received too many requests from this address. Wait a moment and try again.',
  ],
  [
    /Protected resource .* does not match/,
    (href) => `The gateway has another address than ${href}. Use its BASE_URL.`,
  ],
  [
    /invalid_target/,
    () => 'The provider issues tokens for another BASE_URL. Use the address of the gateway.',
  ],
];

/** Could not be reached; the origin says which of the servers on the way it was. */
export class UnreachableError extends Error {
  readonly origin: string;
  constructor(origin: string, options: { readonly cause: unknown }) {
    super(`${origin} cannot be reached`, options);
    this.origin = origin;
  }
}

function findUnreachableOrigin(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return error instanceof UnreachableError ? error.origin : findUnreachableOrigin(error.cause);
}

/** The messages of an error and its causes, with Node's codes for them. */
function listMessages(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return error === undefined ? [] : [String(error)];
  const code = 'code' in error ? [String(error.code)] : [];
  return [error.message, ...code, ...listMessages(error.cause)];
}
