// Which headers a server may be sent (RFC 9110 §5.1, §5.5).
import { text } from '../shapes/scalar.ts';

/** RFC 9110 §5.5: visible characters, spaces and tabs; no line breaks, which would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export const headerValue = text(
  {
    parse: (given) => (VALUE.test(given) ? given.trim() : undefined),
    allowed: 'one line of Latin-1 text',
    explain: (given) =>
      /[\r\n]/.test(given) ? 'It contains a line break, perhaps at its end.' : undefined,
  },
  { schema: { type: 'string' }, isSecret: true },
);

/** RFC 9110 §5.6.2. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** What belongs to one connection (RFC 9110 §7.6.1), to the message, or to the protocol. */
const OWN: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Never repeats a name that is none: somebody may have put a token there. */
export function checkHeaderName(name: string): string | undefined {
  if (!TOKEN.test(name))
    return 'A header’s name consists of letters, digits and hyphens, without a colon or a space.';
  return OWN.has(name.toLowerCase())
    ? `The header ${name} cannot be set: it belongs to the connection, or Postern sets it itself.`
    : undefined;
}
