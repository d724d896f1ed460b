// §18.5: rules as a policy.
import type { Policy, Verdict } from '../policy.ts';
import type { Rules } from './rules.ts';

export const createRulesPolicy = (rules: Rules): Policy => ({
  prepareFor: rules.prepareFor,
  judge({ kind, name, server, annotations }, caller, args) {
    const decision = rules.decide({ kind, name, server, annotations, args }, caller);
    return decision.kind === 'denied' ? DENIED : decision;
  },
});

const DENIED: Verdict = { kind: 'denied', by: 'rules' };
