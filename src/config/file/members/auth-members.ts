// §18.6: `auth` of a server.

import type { JsonObject } from '../../../platform/json.ts';
import { oneOf } from '../../rules.ts';
import { isScopeToken } from '../../scope.ts';
import type { UpstreamAuth } from '../gateway-file.ts';
import { defineMember, type Member, type MemberReader, object } from '../shapes/object.ts';
import { text } from '../shapes/scalar.ts';
import type { Shape } from '../shapes/shape.ts';

const TYPES = ['identity', 'token-exchange', 'forward'] as const;

const authMembers = {
  type: defineMember({
    name: 'type',
    shape: text(oneOf(...TYPES), { schema: { enum: TYPES } }),
    summary:
      'identity: a short-lived token of the gateway. token-exchange: a token of the provider for this server. forward: the caller’s own token.',
  }),
  audience: defineMember({
    name: 'audience',
    shape: text(
      { parse: (given) => given.trim() || undefined, allowed: 'the name of an audience' },
      { schema: { type: 'string', pattern: '\\S' } },
    ),
    summary: 'For whom the token is.',
  }),
  scope: defineMember({
    name: 'scope',
    shape: text(
      {
        parse: (given) => (given.split(' ').every(isScopeToken) ? given : undefined),
        allowed: 'one or more scopes, with one space between them',
      },
      { schema: { type: 'string', pattern: '\\S' } },
    ),
    summary: 'The scopes to ask for, with token-exchange.',
  }),
};

type AuthType = (typeof TYPES)[number];

/** Which members each type has beside `type`, and why it has no others. */
const USES: Readonly<
  Record<
    AuthType,
    { readonly isAudienceNeeded: boolean; readonly hasScope: boolean; readonly why: string }
  >
> = {
  identity: {
    isAudienceNeeded: false,
    hasScope: false,
    why: 'its audience is the server’s URL, and it has no scopes',
  },
  'token-exchange': { isAudienceNeeded: true, hasScope: true, why: '' },
  forward: { isAudienceNeeded: true, hasScope: false, why: 'the token is passed on as it is' },
};

export const authShape: Shape<UpstreamAuth> = object({
  allowed: 'an object such as { "type": "identity" }',
  members: Object.values(authMembers),
  schema: { required: ['type'], allOf: TYPES.map(createTypeSchema) },
  build(members) {
    const { has, read, report } = members;
    if (!has(authMembers.type))
      return report(`"type" is missing. It must be ${oneOf(...TYPES).allowed}.`);
    const type = read(authMembers.type);
    if (type === undefined) return undefined;
    reportUnused(members, type);
    if (type === 'identity') return { type };
    const scope = read(authMembers.scope);
    const audience = readAudience(members);
    if (audience === undefined) return undefined;
    return type === 'forward'
      ? { type, audience }
      : { type, audience, ...(scope !== undefined && { scope }) };
  },
});

function createTypeSchema(type: AuthType): JsonObject {
  const { isAudienceNeeded } = USES[type];
  return {
    if: { required: ['type'], properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: {
      properties: Object.fromEntries(listUnused(type).map(({ name }) => [name, false])),
      ...(isAudienceNeeded && { required: [authMembers.audience.name] }),
    },
  };
}

function reportUnused({ has, report }: MemberReader, type: AuthType): void {
  for (const member of listUnused(type).filter(has))
    report(`"type": "${type}" has no such member: ${USES[type].why}.`, member);
}

function listUnused(type: AuthType): readonly Member<string>[] {
  const { isAudienceNeeded, hasScope } = USES[type];
  const { audience, scope } = authMembers;
  return [...(isAudienceNeeded ? [] : [audience]), ...(hasScope ? [] : [scope])];
}

const readAudience = ({ has, read, report }: MemberReader): string | undefined =>
  has(authMembers.audience)
    ? read(authMembers.audience)
    : report('"audience" is missing: name the audience that the token must be for.');
