import type { Plan } from './plan.ts';

/**
 * Asks again where the configuration has changed meanwhile: of a server that went nothing comes, and its successor may
 * have what was asked for.
 */
export async function askByCurrentPlan<Answer>(
  getPlan: () => Plan,
  ask: (plan: Plan) => Answer | Promise<Answer>,
): Promise<Answer> {
  for (;;) {
    const plan = getPlan();
    const answer = await ask(plan);
    if (getPlan() === plan) return answer;
  }
}
