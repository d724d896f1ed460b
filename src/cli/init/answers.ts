import { clientId, providerSettings } from '../../config/groups/provider.ts';
import { serverSettings } from '../../config/groups/server.ts';
import { storeSettings } from '../../config/groups/store.ts';
import type { Setting } from '../../config/setting.ts';
import { toFlag } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import type { ProviderChoice } from './providers.ts';

/** The answers that `postern init` needs. */
export interface InitAnswers {
  readonly provider: ProviderChoice;
  /** The public address; undefined for this machine, or if it is left for later. */
  readonly baseUrl: string | undefined;
  /** Undefined if it is left for later, like the next two. */
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** True to create a first tool and its test. */
  readonly tool: boolean;
  /** A file with `mcpServers` to import. */
  readonly servers: string | undefined;
  readonly store: 'embedded' | 'redis';
  readonly redisUrl: string | undefined;
}

/** Answers given by flags; the others are prompted for, or use defaults. */
export type GivenAnswers = { readonly [Name in keyof InitAnswers]: InitAnswers[Name] | undefined };

/** Completes the answers for `--yes`. */
export const completeAnswers = (given: GivenAnswers): InitAnswers => ({
  ...given,
  provider: given.provider ?? (given.issuer === undefined ? 'dev' : 'other'),
  tool: given.tool ?? given.servers === undefined,
  store: given.store ?? (given.redisUrl === undefined ? 'embedded' : 'redis'),
});

/** Answers that are validated, in this order. */
const CHECKED = ['baseUrl', 'issuer', 'clientId', 'redisUrl'] as const;

export type CheckedAnswer = (typeof CHECKED)[number];

/** The settings whose rules validate the answers. */
const SETTINGS: Readonly<Record<CheckedAnswer, Setting<string | undefined>>> = {
  baseUrl: serverSettings.baseUrl,
  issuer: providerSettings.issuer,
  clientId,
  redisUrl: storeSettings.redisUrl,
};

/** Describes the problem with `text` without quoting it: a Redis URL may contain a password. */
export function findInitProblem(name: CheckedAnswer, text: string): string | undefined {
  const { rule } = SETTINGS[name];
  return rule.parse(text) === undefined ? `It must be ${rule.allowed}.` : undefined;
}

/** @throws UsageError */
export function checkGivenAnswers(given: GivenAnswers): void {
  for (const name of CHECKED) {
    const text = given[name];
    const problem = text === undefined ? undefined : findInitProblem(name, text);
    if (problem !== undefined)
      throw new UsageError(`${toFlag(name)} is not valid. ${problem}`, 'init');
  }
}
