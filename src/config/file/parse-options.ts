import type { Env } from './expand.ts';
import type { ProgramUser, RuleConfig } from './gateway-file.ts';
import type { FileFormat } from './syntax/read-syntax.ts';

export interface ParseOptions {
  /** As it is named in messages. */
  readonly fileName: string;
  readonly format: FileFormat;
  /** What `${VAR}` is looked up in. */
  readonly env: Env;
  /** Whether replicas share a store (`REDIS_URL`). */
  readonly hasRedis: boolean;
  /** Whether `OAUTH_STATE_SECRET` is set. */
  readonly hasStateSecret: boolean;
  /** The user of programs without `runAs` (`RUN_PROGRAMS_AS`). */
  readonly runProgramsAs: string | undefined;
  /** A user that programs may run as, by name or numbers. Asked once for each text; never rejects. */
  findProgramUser(text: string): Promise<FoundProgramUser>;
  /** An absolute path, for one that is relative to the file. */
  resolvePath(path: string): string;
  /** The text of a file that the configuration names. @throws Error with what is wrong with it. */
  readText(path: string): string;
  /** What is wrong with the patterns and expressions of rules. */
  checkRules?(rules: readonly RuleConfig[]): Promise<readonly RuleProblem[]>;
}

export type FoundProgramUser =
  | { readonly kind: 'found'; readonly user: ProgramUser }
  /** Sentences that follow a colon. */
  | { readonly kind: 'problem'; readonly message: string };

export interface RuleProblem {
  /** `place` of the rule. */
  readonly place: string;
  /** A sentence: what is wrong, and what is allowed. */
  readonly message: string;
}
