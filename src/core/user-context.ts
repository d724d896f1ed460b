/** §2.3: what a verified token says of its user. Built anew for every request. */
export interface UserContext {
  /** The subject: the user's id at the provider. Never empty. */
  readonly sub: string;
  readonly email?: string;
  /** Whether the provider says that `email` is the user's; undefined where it does not say. False is a reason not to use it. */
  readonly emailVerified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[];
  /** All claims of the token, as the provider signed them. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** The original JWT, for tools that call other services on the user's behalf. A secret. */
  readonly token: string;
}
