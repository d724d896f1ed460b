import { catalogue, type ErrorRow } from '../../src/core/errors/catalogue.ts';
import { table } from './table.ts';

const rows: readonly (readonly [string, ErrorRow])[] = Object.entries(catalogue);

/** `docs/errors.md`, from the error catalogue. */
export const errorsPage = (): string => `# Errors

Every error that the service answers is in one of two forms. \`details\` and \`error_description\` say
what went wrong and what is allowed; programs should look at \`reason\` or \`error\` only.

What to do when a log-in fails stands on the [first page](index.md#when-a-log-in-fails).

The column _In the log_ is what the line of the log has as \`error\`: one answer can have several causes,
which the log tells apart.

## JSON-RPC

\`/mcp\` and everything outside \`/oauth/\`; the refusals 403, 404, 405 and 429 have this form
everywhere.

\`\`\`json
{
  "jsonrpc": "2.0",
  "error": {
    "code": -32001,
    "message": "Unauthorized",
    "data": { "reason": "expired_token", "details": "The token has expired." }
  },
  "id": null
}
\`\`\`

A 401 carries the header \`WWW-Authenticate\`, which leads clients to the log-in; a 429 carries
\`Retry-After\` (seconds) and \`data.retryAfter\`.

${table(['Status', 'Code', 'Message', 'data.reason', 'In the log', 'Meaning'], rows.flatMap(jsonrpcCells))}
## OAuth

\`/oauth/authorize\`, \`/oauth/token\`, \`/oauth/register\` and \`/oauth/revoke\` (RFC 6749, RFC 7591).

With \`OAUTH_MODE=proxy\` errors are never redirects. With \`OAUTH_MODE=broker\` an authorization request
whose client and redirect URI are good, but that is wrong otherwise, is answered at the redirect URI
(RFC 6749 §4.1.2.1): at once on this computer (loopback) or where this browser approved the client before,
else by a page with a button that names the host.

A 502 that speaks of the gateway's set-up is no fault of client or user, who lose nothing: the warning in
the log says what was found, what was expected, and which setting to change. The client can try again
with the refresh token that it has.

\`\`\`json
{
  "error": "invalid_client",
  "error_description": "The client is unknown or expired; register again."
}
\`\`\`

${table(['Status', 'error', 'In the log', 'Meaning'], rows.flatMap(oauthCells))}
What the identity provider itself answers to \`/oauth/token\` and \`/oauth/revoke\` comes back unchanged.
`;

type Cells = readonly (readonly string[])[];

function jsonrpcCells([key, { status, jsonrpc, details }]: readonly [string, ErrorRow]): Cells {
  if (jsonrpc === undefined) return [];
  const { code, message, reason } = jsonrpc;
  return [
    [String(status), String(code), message, reason ? asCode(reason) : '', asCode(key), details],
  ];
}

/** A body that cannot be read has a code of its own at the registration. */
const BODY = '`invalid_request`; at `/oauth/register` `invalid_client_metadata`';

function oauthCells([key, { status, oauth, details }]: readonly [string, ErrorRow]): Cells {
  if (oauth === undefined) return [];
  return [[String(status), oauth === 'body' ? BODY : asCode(oauth), asCode(key), details]];
}

const asCode = (text: string): string => `\`${text}\``;
