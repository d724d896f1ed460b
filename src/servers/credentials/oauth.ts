// §24: `oauth`: each user logs in to the server itself, and the gateway keeps the connection.

import {
  choice,
  freeText,
  nonBlank,
  text,
  trueOrFalse,
  wholeNumber,
} from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type FilePlace,
  list,
  type MemberReader,
  object,
  record,
  report,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import type { FileNode } from '../../config/file/syntax/read-syntax.ts';
import { httpUrl, integer, isScopeToken, textWith } from '../../config/rules.ts';
import type {
  ConfiguredAuthorizationServer,
  ConnectionAuth,
} from '../../mcp/upstream/connections.ts';
import { isSafeForTokens } from '../../platform/address.ts';

import { defineCredentialType } from './credential-type.ts';

const EXAMPLE = 'https://login.example.com';

/** Users' logins and tokens are sent to these URLs, and must not be readable in transit. */
const endpoint = text(
  textWith(
    (given) => httpUrl.parse(given) !== undefined && isSafeForTokens(given),
    `an https URL in ASCII, without user info or fragment, such as ${EXAMPLE}; http on localhost, 127.0.0.1 or [::1] alone`,
  ),
  { pattern: '^https?://' },
);

const endpointMembers = {
  authorizationUrl: defineMember('authorizationUrl', endpoint, 'The URL where users log in.'),
  tokenUrl: defineMember('tokenUrl', endpoint, 'The URL where the gateway gets tokens.'),
};

const endpointsShape: Shape<ConfiguredAuthorizationServer> = object({
  allowed: 'an object with authorizationUrl and tokenUrl',
  members: Object.values(endpointMembers),
  schema: { required: Object.keys(endpointMembers) },
  build({ has, read, report: reportHere }) {
    for (const member of Object.values(endpointMembers))
      if (!has(member)) reportHere(`"${member.name}" is missing: both endpoints are needed.`);
    const authorizationUrl = read(endpointMembers.authorizationUrl);
    const tokenUrl = read(endpointMembers.tokenUrl);
    return authorizationUrl === undefined || tokenUrl === undefined
      ? undefined
      : { authorizationUrl, tokenUrl };
  },
});

const authorizationServerShape: Shape<ConfiguredAuthorizationServer> = {
  schema: { anyOf: [endpoint.schema, endpointsShape.schema] },
  read(node: FileNode, place: FilePlace) {
    if (node.kind === 'object') return endpointsShape.read(node, place);
    if (node.kind === 'list')
      return report(
        place,
        node.line,
        'A list is not valid. It must be the issuer as text, or an object with authorizationUrl and tokenUrl.',
      );
    const issuer = endpoint.read(node, place);
    // Providers' documentation often shows the URL of the metadata instead of the issuer.
    if (issuer?.includes('/.well-known/'))
      return report(
        place,
        node.line,
        'This is the address of its metadata. Write the issuer that this document names: usually the part before /.well-known/.',
      );
    return issuer === undefined ? undefined : { issuer };
  },
};

const resourceText = text(
  textWith(
    (given) => URL.canParse(given) && !given.includes('#') && !/\s/.test(given),
    'an absolute URI without a fragment (RFC 8707), or false for none',
  ),
  { pattern: ':' },
);

const resource: Shape<string | false> = {
  schema: { anyOf: [{ const: false }, resourceText.schema] },
  read: (node, place) =>
    node.kind === 'scalar' && node.value === false ? false : resourceText.read(node, place),
};

/** Parameters that the gateway sets itself, and the member that changes each, if any. */
const OWN_PARAMETERS: Readonly<Record<string, string | undefined>> = {
  client_assertion: undefined,
  client_assertion_type: undefined,
  client_id: 'clientId',
  client_secret: 'clientSecret',
  code: undefined,
  code_challenge: 'pkce',
  code_challenge_method: 'pkce',
  code_verifier: 'pkce',
  grant_type: undefined,
  iss: undefined,
  redirect_uri: undefined,
  refresh_token: undefined,
  request: undefined,
  request_uri: undefined,
  resource: 'resource',
  response_mode: undefined,
  response_type: undefined,
  scope: 'scopes',
  state: undefined,
};

/** The message never repeats an unknown name: it may be a misplaced secret. */
function checkParameterName(name: string): string | undefined {
  if (!/^[\w.-]{1,64}$/.test(name))
    return 'A parameter’s name consists of letters, digits, dots, hyphens and underscores.';
  if (!Object.hasOwn(OWN_PARAMETERS, name)) return undefined;
  const member = OWN_PARAMETERS[name];
  return member === undefined
    ? `The parameter ${name} cannot be set: Postern sets it itself.`
    : `The parameter ${name} cannot be set here: use "${member}".`;
}

const parameters = (allowed: string) =>
  record(freeText({ isSecret: true }), {
    allowed,
    checkName: checkParameterName,
    names: { pattern: '^[\\w.-]{1,64}$', not: { enum: Object.keys(OWN_PARAMETERS) } },
  });

const members = {
  clientId: defineMember(
    'clientId',
    nonBlank('the id of a client at the server’s authorization server'),
    'The gateway’s client at the server’s authorization server. Default: the gateway registers itself.',
  ),
  clientSecret: defineMember(
    'clientSecret',
    nonBlank('the secret of that client', true),
    'The secret of that client.',
  ),
  authorizationServer: defineMember(
    'authorizationServer',
    authorizationServerShape,
    'The issuer where users log in, or its endpoints if it has no metadata. Default: the one that the server names.',
  ),
  scopes: defineMember(
    'scopes',
    list(
      text(textWith(isScopeToken, 'one scope, without spaces or quotes'), {
        pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$',
      }),
      { allowed: 'a list of scopes, such as ["read", "write"]; an empty one requests none' },
    ),
    'The scopes to request. Default: those that the server names.',
  ),
  resource: defineMember(
    'resource',
    resource,
    'The resource that the tokens are for (RFC 8707). Default: the resource that the server names; false if its authorization server refuses the parameter.',
  ),
  parameters: defineMember(
    'parameters',
    parameters('an object of parameters, such as { "access_type": "offline" }'),
    'Additional parameters of the authorization request.',
  ),
  tokenParameters: defineMember(
    'tokenParameters',
    parameters('an object of parameters, such as { "audience": "wiki" }'),
    'Additional parameters of token requests.',
  ),
  clientAuth: defineMember(
    'clientAuth',
    choice('none', 'post', 'basic', 'private_key_jwt'),
    'How the gateway’s client authenticates. Default: a method that the authorization server accepts.',
  ),
  assertionAudience: defineMember(
    'assertionAudience',
    choice('issuer', 'endpoint'),
    'The audience of private_key_jwt assertions: the issuer, or the endpoint that each is sent to.',
  ),
  redirectUri: defineMember(
    'redirectUri',
    choice('server', 'common'),
    'The address that the browser returns to: one only for this server, or one shared by all servers, which needs an authorization server that sends iss (RFC 9207).',
  ),
  pkce: defineMember(
    'pkce',
    trueOrFalse,
    'false for an authorization server that refuses PKCE; only with a clientSecret.',
  ),
  owner: defineMember(
    'owner',
    choice('user', 'shared'),
    'The owner of the connection: each user has one, or an operator makes one for everybody.',
  ),
  list: defineMember(
    'list',
    choice('anonymous', 'shared'),
    'The way to get the lists that are shown before a user connects: by a request without a login, or by the shared connection.',
  ),
  accounts: defineMember(
    'accounts',
    wholeNumber(1, 1, { ...integer(1, 1), allowed: '1: a user has one account at a server' }),
    'The number of accounts that a user may connect.',
  ),
  allowPrivate: defineMember(
    'allowPrivate',
    trueOrFalse,
    'true: addresses that the server names, such as its authorization server, do not have to be public.',
  ),
} as const;

const KNOWS_WHO =
  'only with its own tokens can the gateway identify a user without contacting the provider.';

export const oauth = defineCredentialType<ConnectionAuth>({
  type: 'oauth',
  summary: 'a token of the user’s own login at the server.',
  members: Object.values(members),
  required: [],
  whyNoOthers: 'it is the server that users log in at; "scopes" and "resource" say what for',
  schema: { dependencies: { clientSecret: ['clientId'] } },
  read(reader) {
    const { read } = reader;
    read(members.accounts);
    const auth: ConnectionAuth = {
      type: 'oauth',
      clientId: read(members.clientId),
      clientSecret: read(members.clientSecret),
      authorizationServer: read(members.authorizationServer),
      scopes: read(members.scopes),
      resource: read(members.resource),
      parameters: read(members.parameters),
      tokenParameters: read(members.tokenParameters),
      clientAuth: read(members.clientAuth),
      assertionAudience: read(members.assertionAudience),
      redirectUri: read(members.redirectUri),
      pkce: read(members.pkce) ?? true,
      owner: read(members.owner) ?? 'user',
      list: read(members.list),
      allowPrivate: read(members.allowPrivate) ?? false,
    };
    reportContradictions(auth, reader);
    return auth;
  },
  requirements: [
    {
      checkedAt: 'start',
      isMet: ({ auth }) => auth.required,
      problem: 'needs to know who calls, and with AUTH_REQUIRED=false nobody logs in.',
    },
    {
      checkedAt: 'start',
      isMet: ({ auth, oauth: settings }) => !auth.required || settings.mode === 'broker',
      problem: `needs OAUTH_MODE=broker: ${KNOWS_WHO}`,
    },
    {
      checkedAt: 'start',
      isMet: ({ admin }, { owner }) => owner !== 'shared' || admin.groups.length > 0,
      problem:
        'with "owner": "shared" needs ADMIN_GROUPS: only operators connect it, and without those groups there are none.',
    },
  ],
  isOfCaller: true,
  needsUser: true,
  passesTokensOn: true,
  isIssuedForServer: true,
  open: (_runtime, { connections }) => ({
    openServer({ name, url }, auth) {
      if (connections === undefined) return {};
      const server = { name, url, auth };
      return {
        getToken: connections.createGetToken(server),
        replaceRefusedToken: connections.createReplaceRefusedToken(server),
      };
    },
  }),
});

/** Reports invalid combinations of valid members. */
function reportContradictions(auth: ConnectionAuth, { has, report: reportAt }: MemberReader) {
  const { authorizationServer, clientAuth, pkce, owner } = auth;
  const hasSecret = has(members.clientSecret);
  if (hasSecret && !has(members.clientId))
    reportAt('A secret belongs to a client: add its "clientId".', members.clientSecret);
  const hasMetadata = authorizationServer === undefined || 'issuer' in authorizationServer;
  if (!hasMetadata && !has(members.clientId))
    reportAt(
      'If the endpoints are configured, the gateway cannot register itself: create a client there, and add its "clientId".',
      members.authorizationServer,
    );
  if (auth.redirectUri === 'common' && !has(members.clientId))
    reportAt(
      '"common" is for a client that was made by hand: add its "clientId", or leave it out. The gateway registers the address of this server.',
      members.redirectUri,
    );
  if (auth.redirectUri === 'common' && !hasMetadata)
    reportAt(
      '"common" needs an authorization server whose metadata says that it sends iss (RFC 9207): where only the endpoints are named, leave it out.',
      members.redirectUri,
    );
  if (!pkce && !hasSecret)
    reportAt(
      'false needs a "clientSecret": without PKCE or a secret, anyone who sees the code of a login could use it.',
      members.pkce,
    );
  if (hasSecret && (clientAuth === 'none' || clientAuth === 'private_key_jwt'))
    reportAt(
      `"${clientAuth}" sends no secret: remove "clientSecret", or use "post" or "basic".`,
      members.clientAuth,
    );
  const needsSecret = clientAuth === 'post' || clientAuth === 'basic';
  if (needsSecret && has(members.clientId) && !hasSecret)
    reportAt(`"${clientAuth}" sends a secret: add "clientSecret".`, members.clientAuth);
  if (auth.list === 'shared' && owner !== 'shared')
    reportAt(
      '"shared" needs "owner": "shared": no user is shown what another one’s connection lists.',
      members.list,
    );
}
