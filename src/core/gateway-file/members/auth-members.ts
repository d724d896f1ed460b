// §18.6: `auth` of a server.
import { oneOf } from '../../config/rules.ts';
import { isScopeToken } from '../../scope.ts';
import type { UpstreamAuth } from '../gateway-file.ts';
import { defineMember, type MemberReader, object } from '../shapes/object.ts';
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

export const authShape: Shape<UpstreamAuth> = object({
  allowed: 'an object such as { "type": "identity" }',
  members: Object.values(authMembers),
  build(members) {
    if (!members.has(authMembers.type))
      return members.report(`"type" is missing. It must be ${oneOf(...TYPES).allowed}.`);
    const type = members.read(authMembers.type);
    return type && BUILDERS[type](members);
  },
});

const BUILDERS: Readonly<
  Record<(typeof TYPES)[number], (members: MemberReader) => UpstreamAuth | undefined>
> = {
  identity(members) {
    for (const member of [authMembers.audience, authMembers.scope]) {
      if (members.has(member))
        members.report(
          '"type": "identity" has no such member: its audience is the server’s URL.',
          member,
        );
    }
    return { type: 'identity' };
  },
  'token-exchange'(members) {
    const audience = readAudience(members, 'the token is asked for');
    const scope = members.read(authMembers.scope);
    return audience === undefined
      ? undefined
      : { type: 'token-exchange', audience, ...(scope !== undefined && { scope }) };
  },
  forward(members) {
    if (members.has(authMembers.scope))
      members.report(
        '"type": "forward" has no such member: the token is passed on as it is.',
        authMembers.scope,
      );
    const audience = readAudience(
      members,
      'callers’ tokens must be made, so that no others are passed on',
    );
    return audience === undefined ? undefined : { type: 'forward', audience };
  },
};

function readAudience(members: MemberReader, what: string): string | undefined {
  return members.has(authMembers.audience)
    ? members.read(authMembers.audience)
    : members.report(`"audience" is missing: name the audience for which ${what}.`);
}
