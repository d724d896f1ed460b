// RFC 6749 §3.3: scope = scope-token *( SP scope-token ).

/** The scopes that the metadata offers, and that a client gets that asks for nothing (§4.9). */
export const DEFAULT_SCOPES = ['openid', 'profile', 'email'] as const;

/** The scopes that the parameter names, in their order. */
export const parseScope = (scope = ''): readonly string[] =>
  scope.split(' ').filter((name) => name !== '');

/** One scope: printable ASCII without space, quote and backslash. */
export const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/;

export const isScopeToken = (text: string): boolean => SCOPE_TOKEN.test(text);

/** True if every reader takes the parameter apart as `parseScope` does. */
export const isWellFormedScope = (scope: string): boolean => scope.split(' ').every(isScopeToken);
