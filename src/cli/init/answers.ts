import type { ProviderChoice } from './providers.ts';

/** What `postern init` has to know. */
export interface Answers {
  readonly provider: ProviderChoice;
  /** Undefined where it is to be filled in later; so are the next three. */
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly audience: string | undefined;
  /** Whether to write a first tool with its test. */
  readonly tool: boolean;
  /** A file with `mcpServers` to take over. */
  readonly servers: string | undefined;
  readonly store: 'embedded' | 'redis';
  readonly redisUrl: string | undefined;
}

/** What flags say; the rest is asked for, or has its default. */
export type GivenAnswers = { readonly [Name in keyof Answers]: Answers[Name] | undefined };

/** For `--yes`. */
export const completeAnswers = (given: GivenAnswers): Answers => ({
  ...given,
  provider: given.provider ?? (given.issuer === undefined ? 'dev' : 'other'),
  tool: given.tool ?? given.servers === undefined,
  store: given.store ?? (given.redisUrl === undefined ? 'embedded' : 'redis'),
});
