/** What went wrong, in one sentence that says what to do. */
export function explain(error: unknown, { href, protocol }: URL): string {
  const messages = chain(error);
  const failed = failedPlace(error);
  if (failed !== undefined && failed !== new URL(href).origin) {
    return `Nothing answers at ${failed}, where the log-in leads: is the provider running?`;
  }
  const known = REASONS.find(([sign]) => messages.some((message) => sign.test(message)));
  if (known !== undefined) return known[1](href);
  if (protocol === 'https:' && messages.some((message) => /SSL|TLS|wrong version/i.test(message))) {
    return `${href} does not speak TLS: try http://.`;
  }
  return `The demo failed: ${messages.join(': ').slice(0, 500)}`;
}

const REASONS: readonly (readonly [sign: RegExp, reason: (href: string) => string])[] = [
  [
    /ECONNREFUSED|ENOTFOUND/,
    (href) => `Nothing answers at ${href}: start it with npm run dev, in another terminal.`,
  ],
  [
    /rate_limit_exceeded|Too Many Requests/,
    () => 'The gateway has had too many requests from here: wait a little, and try again.',
  ],
  [
    /Protected resource .* does not match/,
    (href) => `The gateway calls itself by another address than ${href}: use that of its BASE_URL.`,
  ],
  [
    /invalid_target/,
    () => 'The provider makes tokens for another BASE_URL: use the address that the gateway has.',
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

function failedPlace(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return error instanceof UnreachableError ? error.origin : failedPlace(error.cause);
}

/** The messages of an error and its causes, with the codes by which Node names them. */
function chain(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return error === undefined ? [] : [String(error)];
  const code = 'code' in error ? [String(error.code)] : [];
  return [error.message, ...code, ...chain(error.cause)];
}
