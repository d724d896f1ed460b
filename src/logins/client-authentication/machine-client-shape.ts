// §13.6: `clients` of the configuration file.

import type { Config } from '../../config/config.ts';
import { patternText, text, wholeNumber } from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type FilePlace,
  list,
  type MemberReader,
  nameKind,
  object,
  report,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { toValue } from '../../config/file/syntax/read-syntax.ts';
import type { Problem } from '../../config/problem.ts';
import { httpUrl, isScopeToken, type Rule, textWith } from '../../config/rules.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import { getMessage } from '../../platform/error-code.ts';
import { hashSha256, isEqualSecret } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { parseKeySet, type VerificationKey } from '../auth/jwk.ts';
import {
  type MachineClient,
  type MachineCredentials,
  markClient,
} from '../auth/machine-clients.ts';
import { MAX_SCOPES, MAX_TOKEN_RESOURCES } from '../grants/token-codec.ts';

export interface PlacedClient {
  readonly client: Omit<MachineClient, 'mark' | 'place'>;
  readonly place: FilePlace;
  readonly line: number;
}

const ID_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';

/** IDs of other clients, in any spelling: the two must not be confused. */
const TAKEN = /^(svc-|https:|postern-)/i;

const idRule: Rule<string> = {
  parse: (given) => (new RegExp(ID_PATTERN).test(given) && !TAKEN.test(given) ? given : undefined),
  allowed:
    '1 to 64 letters, digits and the characters . _ -, of which the first is a letter or digit',
  explain: (given) =>
    TAKEN.test(given)
      ? 'IDs that begin with svc-, https: or postern- are those of other clients. Choose another one.'
      : undefined,
};

const secretRule: Rule<string> = {
  // In the form of `MachineCredentials`.
  parse: (given) =>
    /^[0-9a-f]{64}$/i.test(given) ? Buffer.from(given, 'hex').toString('base64url') : undefined,
  allowed: 'the SHA-256 of the secret: 64 hexadecimal digits, as postern clients hash prints them',
};

const urlRule: Rule<string> = {
  parse(given) {
    const url = httpUrl.parse(given);
    return url !== undefined && isSafeForTokens(url) ? url : undefined;
  },
  allowed: 'an absolute https URL; http is for loopback alone',
};

const group = text(
  { parse: (given) => given.trim() || undefined, allowed: 'the name of a group' },
  { minLength: 1 },
);

const RESOURCE_PATTERN = '^(https?://|/(mcp(/[A-Za-z0-9-]+)?|admin)/?$)';

const resource = patternText(
  RESOURCE_PATTERN,
  'a path of this gateway (/mcp, /mcp/<server or view> or /admin), or its whole URL',
);

const jwks: Shape<readonly VerificationKey[]> = {
  schema: {
    type: 'object',
    required: ['keys'],
    properties: { keys: { type: 'array', minItems: 1, items: { type: 'object' } } },
  },
  read(node, place) {
    if (node.kind !== 'object')
      return report(place, node.line, `${nameKind(node)} is not valid. It must be a JWK Set.`);
    const set = toValue(node);
    if (hasPrivateKey(set))
      return report(
        place,
        node.line,
        'This set contains a private or secret key. Put the public key here, and keep the private key only with the client.',
      );
    try {
      return parseKeySet(Buffer.from(JSON.stringify(set))).usable;
    } catch (error) {
      const reason = getMessage(error);
      return report(
        place,
        node.line,
        `It must be a JWK Set with a public key for RS256, PS256, ES256, EdDSA or the like; but ${reason}.`,
      );
    }
  },
};

const hasPrivateKey = (set: unknown) =>
  isObject(set) &&
  Array.isArray(set.keys) &&
  set.keys.some((key) => isObject(key) && ('d' in key || 'k' in key));

const clientMembers = {
  id: defineMember(
    'id',
    text(idRule, { pattern: ID_PATTERN }),
    'The client ID. Rules and the audit log name the client by it; its sub is client:<id>.',
  ),
  secretSha256: defineMember(
    'secretSha256',
    text(secretRule, { pattern: '^[0-9A-Fa-f]{64}$', isSecret: true }),
    'The SHA-256 of the secret, in hexadecimal. postern clients hash generates a secret and this hash.',
  ),
  jwks: defineMember('jwks', jwks, 'The public keys that verify the client’s assertions.'),
  jwksUri: defineMember(
    'jwksUri',
    text(urlRule, { pattern: '^https?://', isSecret: true }),
    'The URL of the client’s public keys.',
  ),
  scopes: defineMember(
    'scopes',
    list(text(textWith(isScopeToken, 'one scope'), { minLength: 1 }), {
      allowed: 'a list of scopes',
    }),
    'The scopes that its tokens may have. Default: none.',
  ),
  groups: defineMember(
    'groups',
    list(group, { allowed: 'a list of groups' }),
    'The groups that the client has in rules.',
  ),
  resources: defineMember(
    'resources',
    list(resource, { allowed: 'a list of one resource or more', isNotEmpty: true }),
    'The resources that its tokens may be for: /mcp for all servers, /mcp/<server or view> for one, /admin. Default: all of them.',
  ),
  rateLimit: defineMember(
    'rateLimit',
    wholeNumber(1, 1_000_000_000),
    'The maximum number of its calls in a window (MCP_RATE_LIMIT_WINDOW_MS), regardless of MCP_USER_RATE_LIMIT_MAX.',
  ),
};

const PROOFS = [clientMembers.secretSha256, clientMembers.jwks, clientMembers.jwksUri] as const;
const PROOF_NAMES = '"secretSha256", "jwks" or "jwksUri"';

const SCHEMA: JsonObject = {
  required: ['id'],
  oneOf: PROOFS.map(({ name }) => ({ required: [name] })),
};

const clientShape: Shape<Omit<MachineClient, 'mark' | 'place'>> = object({
  allowed: 'an object with id, and secretSha256, jwks or jwksUri',
  members: Object.values(clientMembers),
  schema: SCHEMA,
  replaced: {
    secret:
      'The file has the hash of a secret, not the secret: "secretSha256". postern clients hash makes it.',
  },
  build(members) {
    const { has, read, report: reportHere } = members;
    const id = read(clientMembers.id);
    if (!has(clientMembers.id)) reportHere('"id" is missing: the client ID.');
    const credentials = readCredentials(members);
    const scopes = [...new Set(read(clientMembers.scopes) ?? [])];
    if (scopes.length > MAX_SCOPES)
      reportHere(`A client has ${MAX_SCOPES} scopes at most.`, clientMembers.scopes);
    const groups = [...new Set(read(clientMembers.groups) ?? [])];
    const resources = read(clientMembers.resources);
    if ((resources?.length ?? 0) > MAX_TOKEN_RESOURCES)
      reportHere(
        `A client has ${MAX_TOKEN_RESOURCES} resources at most. "/mcp" is all servers.`,
        clientMembers.resources,
      );
    const rateLimit = read(clientMembers.rateLimit);
    return id !== undefined && credentials !== undefined
      ? { id, credentials, scopes, groups, resources, rateLimit }
      : undefined;
  },
});

function readCredentials({
  has,
  read,
  report: reportHere,
}: MemberReader): MachineCredentials | undefined {
  const given = PROOFS.filter(has);
  if (given.length === 0)
    return reportHere(
      `${PROOF_NAMES} is missing: the secret or the key by which the client proves who it is.`,
    );
  if (given.length > 1)
    return reportHere(`Only one of ${PROOF_NAMES} can be given. Remove the others.`, given[1]);
  const hash = read(clientMembers.secretSha256);
  const keys = read(clientMembers.jwks);
  const url = read(clientMembers.jwksUri);
  if (hash !== undefined) return { kind: 'secret', hash };
  if (keys !== undefined) return { kind: 'keys', keys };
  return url === undefined ? undefined : { kind: 'keysUrl', url };
}

export const clientsShape: Shape<readonly PlacedClient[]> = list(
  {
    schema: clientShape.schema,
    read(node, place) {
      const client = clientShape.read(node, place);
      return client && { client, place, line: node.line };
    },
  },
  { allowed: 'a list of clients' },
);

/**
 * Checks the whole file: client IDs must be unique, and resources must name servers or views. Reports each problem at its place.
 */
export function completeClients(
  placed: readonly PlacedClient[],
  fileName: string,
  isServerOrView: (name: string) => boolean,
): readonly MachineClient[] {
  const lines = new Map<string, number>();
  for (const { client, place, line } of placed) {
    const earlier = lines.get(client.id);
    if (earlier === undefined) lines.set(client.id, line);
    else
      report(
        place,
        line,
        `There is another client ${quote(client.id)} in line ${earlier}. Each client needs its own ID.`,
      );
    for (const path of client.resources ?? []) {
      const [, name] = /^\/mcp\/([^/]+)\/?$/.exec(path) ?? [];
      if (name !== undefined && !isServerOrView(name))
        report(place, line, `The resource ${quote(path)} names no server or view of this file.`);
    }
  }
  return placed.map(({ client, place, line }) =>
    markClient({ ...client, place: `${fileName}:${line}: ${place.path}` }),
  );
}

// RFC 6749 §2.3.1: secrets of clients. The gateway knows only their hashes.

/** A hash without salt needs a random secret: passwords that people choose can be guessed. */
export const MIN_SECRET_LENGTH = 32;
/** Longer values are files, not secrets. */
export const MAX_SECRET_LENGTH = 1024;

/** In the configuration file: hexadecimal, as other programs print it. */
export const hashForFile = (secret: string): string =>
  Buffer.from(hashSha256(secret), 'base64url').toString('hex');

/** Constant time, even if there is no such client. */
export const isSecretOf = (secret: string, hash: string | undefined): boolean =>
  isEqualSecret(hashSha256(secret), hash ?? NO_HASH) && hash !== undefined;

const NO_HASH = hashSha256('');

// Settings that `clients` requires.

/** For a gateway that is about to serve. */
export function findMachineClientProblems(
  clients: readonly MachineClient[] = [],
  { server, oauth }: Config,
): readonly Problem[] {
  const [first] = clients;
  if (first === undefined) return [];
  if (oauth.mode !== 'broker')
    return [
      {
        place: first.place,
        message:
          'Only a gateway that issues its own tokens can have "clients"; this one has OAUTH_MODE=proxy, the default. Set OAUTH_MODE=broker, or remove "clients".',
      },
    ];
  const { baseUrl } = server;
  const isOwn = (one: string) =>
    one.startsWith(baseUrl) && OWN_PATH.test(one.slice(baseUrl.length));
  return clients.flatMap(({ place, resources = [] }) =>
    resources
      .filter((one) => !one.startsWith('/') && !isOwn(one))
      .map((one) => ({
        place,
        message: `The resource ${quote(one)} is not one of this gateway. It must begin with BASE_URL, which is ${baseUrl}, or be a path such as /mcp.`,
      })),
  );
}

const OWN_PATH = /^(\/?|\/(mcp(\/[A-Za-z0-9-]+)?|admin)\/?)$/;
