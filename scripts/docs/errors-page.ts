import { catalogue, type ErrorRow } from '../../src/errors/catalogue.ts';
import { renderTable } from './table.ts';

const rows: readonly (readonly [string, ErrorRow])[] = Object.entries(catalogue);

/** `docs/errors.md`, from the error catalogue. */
export const renderErrorsPage = (): string => `# Errors

The gateway returns errors in one of two forms. \`details\` and \`error_description\` say what happened
and what to do. Programs should look at \`reason\`, \`code\` and \`error\` only: the wording may change.

To fix a failing login, start with [this table](connect.md#when-a-login-fails).

The column _In the log_ is the \`error\` of the line in the gateway's log. It distinguishes causes that
callers see as the same error. Two values have no row: \`refused_by_provider\` (the identity provider
refused a login or a token request) and \`access_denied\` (the user chose Deny).

## JSON-RPC

\`/mcp\` and everything else outside \`/oauth/\` answer in this form. 403, 404, 405 and 429 have it on every
endpoint.

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

A 401 has the header \`WWW-Authenticate\`, which tells clients where to log in. A 429 has \`Retry-After\`
(seconds) and \`data.retryAfter\`.

${renderTable(['Status', 'Code', 'Message', 'data.reason', 'In the log', 'Meaning'], rows.flatMap(createJsonRpcRow))}
## OAuth

\`/oauth/*\` answers in this form (RFC 6749, RFC 7591).

With \`OAUTH_MODE=proxy\`, errors are never redirects. With \`OAUTH_MODE=broker\`, if the client and the redirect URI
of an authorization request are known, any other mistake in it is reported to the client at its redirect
URI (RFC 6749 §4.1.2.1). The browser goes there at once if the address is on this computer (loopback), or if the
user approved the client before in this browser. Otherwise the user sees a page with a button that names
the host.

A 502 that says that the gateway is misconfigured is not the fault of the client or the user, and
neither loses anything. The warning in the log says what was found, what was expected, and which setting to
change. The client can try again with the refresh token that it has.

\`\`\`json
{
  "error": "invalid_client",
  "error_description": "The client is unknown or its registration has expired. Register again."
}
\`\`\`

${renderTable(['Status', 'error', 'In the log', 'Meaning'], rows.flatMap(createOAuthRow))}
With \`OAUTH_MODE=proxy\`, the identity provider's own answers to \`/oauth/token\` and \`/oauth/revoke\` are
returned unchanged.
`;

type Cells = readonly (readonly string[])[];

function createJsonRpcRow([key, { status, jsonrpc, details }]: readonly [string, ErrorRow]): Cells {
  if (jsonrpc === undefined) return [];
  const { code, message, reason } = jsonrpc;
  return [
    [
      String(status),
      String(code),
      message,
      reason ? formatCode(reason) : '',
      formatCode(key),
      details,
    ],
  ];
}

/** A body that cannot be read has its own code at the registration. */
const BODY = '`invalid_request`; at `/oauth/register` `invalid_client_metadata`';

function createOAuthRow([key, { status, oauth, details }]: readonly [string, ErrorRow]): Cells {
  if (oauth === undefined) return [];
  return [[String(status), oauth === 'body' ? BODY : formatCode(oauth), formatCode(key), details]];
}

const formatCode = (text: string): string => `\`${text}\``;
