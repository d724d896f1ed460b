// RFC 6749 §3.3: the scope parameter.

/** What the metadata offers, and what a client gets that asks for nothing (Spec §4.9). */
export const DEFAULT_SCOPES = ['openid', 'profile', 'email'] as const;

/** The scopes that the parameter names, in their order. */
export const parseScope = (scope = ''): readonly string[] =>
  scope.split(' ').filter((name) => name !== '');

const GRAMMAR = /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/;

/** Whether every reader takes the parameter apart as `parseScope` does. */
export const isWellFormedScope = (scope: string): boolean => GRAMMAR.test(scope);
