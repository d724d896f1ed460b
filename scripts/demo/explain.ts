/** What went wrong, in one sentence that says what to do. */
export function explain(error: unknown, { href, protocol }: URL): string {
  const messages = chain(error);
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

/** The messages of an error and its causes, with the codes by which Node names them. */
function chain(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return error === undefined ? [] : [String(error)];
  const code = 'code' in error ? [String(error.code)] : [];
  return [error.message, ...code, ...chain(error.cause)];
}
