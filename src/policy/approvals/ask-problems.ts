// §27: what rules that ask need of the settings.
import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import type { GuardConfig } from '../guards/guard-config.ts';
import type { RuleConfig } from '../rules/rule-config.ts';

/** Of a gateway that is about to serve. */
export function findAskProblems(
  { rules = [], guards = [] }: AskingFile,
  config: Pick<Config, 'auth' | 'admin' | 'oauth'>,
): readonly Problem[] {
  // They decide in place of operators.
  const hasGuards = guards.some(({ on }) => on.includes('approval'));
  return rules.flatMap(({ ask, place }) => {
    const message = ask && PROBLEMS[ask](config, hasGuards);
    return message === undefined ? [] : [{ place, message }];
  });
}

interface AskingFile {
  readonly rules?: readonly RuleConfig[];
  readonly guards?: readonly Pick<GuardConfig, 'on'>[];
}

/** Whether users can log in at the gateway, and so decide at a page of its own. */
export const hasApprovalsPage = ({ oauth }: Pick<Config, 'oauth'>): boolean =>
  oauth.mode === 'broker';

type FindProblem = (
  config: Pick<Config, 'auth' | 'admin' | 'oauth'>,
  hasGuards: boolean,
) => string | undefined;

const PROBLEMS: Readonly<Record<NonNullable<RuleConfig['ask']>, FindProblem>> = {
  // Clients that can ask need nothing else; the others are told so.
  user: () => undefined,
  page: (config) =>
    hasApprovalsPage(config)
      ? undefined
      : '"ask": "page" needs OAUTH_MODE=broker: only then can users log in at the page of approvals. Set that, or write "ask": "user".',
  operator: ({ auth, admin }, hasGuards) => {
    if (!auth.required)
      return '"ask": "operator" needs to know who calls, and with AUTH_REQUIRED=false nobody logs in. Write "ask": "user".';
    return admin.groups.length > 0 || hasGuards
      ? undefined
      : '"ask": "operator" needs ADMIN_GROUPS: without those groups there are no operators who could decide. Set it, or write "ask": "user" or "page".';
  },
};
