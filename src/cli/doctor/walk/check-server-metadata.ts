// RFC 8414: what the authorization server says of itself, as strict clients read it.

import { describeIssuerMismatch } from '../../../auth/provider-metadata.ts';
import { isStringArray, type JsonObject } from '../../../platform/json.ts';
import { type Finding, failure, ok, warning } from '../finding.ts';
import { adviseOnWellKnown } from './check-resource-metadata.ts';
import type { MetadataAtPath } from './find-server-metadata.ts';
import type { Walk } from './walk.ts';

const CHECK = 'server-metadata';

export async function checkServerMetadata(walk: Walk): Promise<readonly Finding[]> {
  if ((await walk.findResourceMetadata()) === undefined) return [];
  const found = await walk.readServerMetadata();
  const first = found.find((one) => one.document !== undefined);
  if (first?.document === undefined)
    return [explainMissing(found, walk.baseUrl, (await walk.listLacking()).includes('keySet'))];
  const { document } = first;
  return [
    judgeIssuer(document, await findExpectedIssuer(walk)),
    ...judgeMembers(document),
    ...judgePlaces(found, walk.baseUrl),
  ];
}

async function findExpectedIssuer(walk: Walk): Promise<string> {
  const servers = (await walk.readResourceMetadata())?.authorization_servers;
  return (isStringArray(servers) ? servers[0] : undefined) ?? walk.baseUrl;
}

/** `lacksKeys`: that the gateway does not reach the provider was said before. */
function explainMissing(
  found: readonly MetadataAtPath[],
  baseUrl: string,
  lacksKeys: boolean,
): Finding {
  const failed = found.find(({ status }) => status >= 500);
  const places = found.map(({ url, status }) => `${url} (${status})`).join(', ');
  if (failed !== undefined)
    return failure(
      CHECK,
      `The metadata of the authorization server cannot be read: ${failed.status}.`,
      {
        why: `The gateway says: ${failed.said ?? 'nothing more'}`,
        ...(!lacksKeys && {
          setting: 'OIDC_ISSUER',
          remedy:
            "check that the provider runs, that the gateway can reach it (HTTPS_PROXY=http://host:port where only a proxy leads out), and that OIDC_ISSUER is exactly its issuer. The gateway's log has the reason.",
        }),
      },
    );
  return failure(
    CHECK,
    `There is no metadata of the authorization server where clients look: ${places}.`,
    adviseOnWellKnown(baseUrl),
  );
}

/** RFC 8414 §3.3. In proxy mode the document names the provider unless told otherwise. */
function judgeIssuer({ issuer }: JsonObject, expected: string): Finding {
  const check = `${CHECK}.issuer`;
  if (issuer === expected)
    return ok(check, `The authorization server's issuer is ${expected}, as clients expect.`);
  return warning(
    check,
    `${describeIssuerMismatch('issuer of the metadata', issuer, expected)} (RFC 8414 §3.3).`,
    {
      why: 'Clients that compare them refuse to log in: the MCP SDK 2.x, oauth4webapi, the Go SDK.',
      setting: 'OAUTH_MODE, OAUTH_METADATA_ISSUER',
      remedy: 'set OAUTH_MODE=broker, or in proxy mode OAUTH_METADATA_ISSUER=self.',
    },
  );
}

/** What clients need of the document. */
const MEMBERS: readonly {
  readonly name: string;
  readonly isGood: (value: unknown) => boolean;
}[] = [
  ...['authorization_endpoint', 'token_endpoint', 'jwks_uri'].map((name) => ({
    name,
    isGood: (value: unknown) => typeof value === 'string' && URL.canParse(value),
  })),
  {
    name: 'code_challenge_methods_supported',
    isGood: (value) => isStringArray(value) && value.includes('S256'),
  },
  {
    name: 'response_types_supported',
    isGood: (value) => isStringArray(value) && value.includes('code'),
  },
];

function judgeMembers(document: JsonObject): readonly Finding[] {
  const lacking = MEMBERS.filter(({ name, isGood }) => !isGood(document[name]));
  if (lacking.length === 0)
    return [
      ok(`${CHECK}.members`, 'The metadata has all that clients need, PKCE with S256 included.'),
    ];
  const names = lacking.map(({ name }) => name).join(', ');
  return [
    failure(`${CHECK}.members`, `The metadata lacks ${names}, or has no good value there.`, {
      remedy: 'check that no proxy in front changes the document.',
    }),
  ];
}

/** A client tries one of these places or two, not all. */
function judgePlaces(found: readonly MetadataAtPath[], baseUrl: string): readonly Finding[] {
  const missing = found.filter(({ document }) => document === undefined);
  if (missing.length === 0) return [];
  return [
    warning(
      `${CHECK}.places`,
      `There is no metadata at ${missing.map(({ url, status }) => `${url} (${status})`).join(' and ')}.`,
      { why: 'Some clients look there only.', ...adviseOnWellKnown(baseUrl) },
    ),
  ];
}
