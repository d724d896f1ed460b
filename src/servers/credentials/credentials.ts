// §18.6: credentials for servers. A server learns nothing about the caller unless its `auth` requires it.

import { choice } from '../../config/file/shapes/scalar.ts';
import { defineMember, object, type Shape } from '../../config/file/shapes/shape.ts';
import { oneOf } from '../../config/rules.ts';
import type { Endpoint } from '../../http/endpoint/endpoint.ts';
import type { UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import {
  addToken,
  type CallerTokens,
  type CredentialServer,
  type CredentialType,
  type ServerAccess,
  type ServerCredentials,
  type TypedAuth,
} from './credential-type.ts';
import { forward } from './forward.ts';
import { identity } from './identity.ts';
import { oauth } from './oauth.ts';
import { tokenExchange } from './token-exchange.ts';

/** In the order of the documentation. */
export const CREDENTIAL_TYPES = [identity, oauth, tokenExchange, forward] as const;

type AuthOf<Type> = Type extends CredentialType<infer Auth> ? Auth : never;

/** The credentials for a server: `none` if the file has no `auth`. */
export type UpstreamAuth = { readonly type: 'none' } | AuthOf<(typeof CREDENTIAL_TYPES)[number]>;

const ALL_TYPES: readonly CredentialType[] = CREDENTIAL_TYPES;

/** Undefined for `none`. */
export const findCredentialType = ({ type }: TypedAuth): CredentialType | undefined =>
  ALL_TYPES.find((one) => one.type === type);

export type Credentials = ReturnType<typeof openCredentials>;

/** `types` are the types that a server can have. */
export function openCredentials(
  runtime: UpstreamRuntime,
  callers: CallerTokens,
  types: readonly CredentialType[] = CREDENTIAL_TYPES,
) {
  const opened = types.map((type) => ({ type, ...type.open(runtime, callers) }));

  return {
    openAccess(server: CredentialServer): ServerAccess {
      const { auth } = server;
      const own = opened.find(({ type }) => type.type === auth.type);
      const { getToken, replaceRefusedToken, sign } = own?.openServer(server, auth) ?? NONE;
      return {
        getHeaders: own && getToken && addToken(getToken, own.type),
        replaceRefusedToken,
        sign,
      };
    },
    /** `isUsed`: whether any server currently has credentials of this type. */
    createEndpoints: (isUsed: (type: CredentialType) => boolean): readonly Endpoint[] =>
      opened.flatMap(({ type, createEndpoints }) => createEndpoints?.(() => isUsed(type)) ?? []),
  };
}

const NONE: ServerCredentials = {};

// `auth` in the configuration file: `type`, and the members of that type.

export const authShape: Shape<UpstreamAuth> = createAuthShape<UpstreamAuth>(CREDENTIAL_TYPES);

export function createAuthShape<Auth extends TypedAuth>(
  types: readonly CredentialType<Auth>[],
): Shape<Auth> {
  const names = types.map(({ type }) => type);
  const typeMember = defineMember(
    'type',
    choice(...names),
    types.map(({ type, summary }) => `${type}: ${summary}`).join(' '),
  );
  /** The members of all types, without duplicates. */
  const typedMembers = [...new Set(types.flatMap(({ members }) => members))];
  const listForeign = ({ members }: CredentialType<Auth>) =>
    typedMembers.filter((member) => !members.includes(member));

  return object({
    allowed: 'an object such as { "type": "oauth" }',
    members: [typeMember, ...typedMembers],
    schema: {
      required: [typeMember.name],
      allOf: types.map((one) => ({
        if: { required: ['type'], properties: { type: { const: one.type } } },
        // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
        then: {
          properties: Object.fromEntries(listForeign(one).map(({ name }) => [name, false])),
          ...(one.required.length > 0 && { required: one.required.map(({ name }) => name) }),
          ...one.schema,
        },
      })),
    },
    build(members) {
      const { has, read, report } = members;
      if (!has(typeMember))
        return report(`"type" is missing. It must be ${oneOf(...names).allowed}.`);
      const given = read(typeMember);
      const type = types.find((one) => one.type === given);
      if (type === undefined) return undefined;
      for (const member of listForeign(type).filter(has))
        report(`"type": "${type.type}" has no such member: ${type.whyNoOthers}.`, member);
      return type.read(members);
    },
  });
}
