// §22.6: what approving a server would change, whole: nobody approves what was not shown.
import type { JsonObject } from '../../core/json.ts';
import type { DescribedServer, ReviewedServer } from '../upstreams/catalog/lock-approval.ts';
import { renderDifference, WHOLE } from './render-difference.ts';

/** Of the texts of one answer, in characters: more than anybody reads. */
const MAX_CHARACTERS = 1_000_000;

/** One that is too long to be shown has no digest, so that it cannot be approved here. */
export function renderReviews(reviews: readonly ReviewedServer[]): readonly JsonObject[] {
  let left = MAX_CHARACTERS;

  function renderReview(review: DescribedServer): JsonObject {
    const { server, digest, differences } = review;
    const shown: JsonObject[] = [];
    let characters = 0;
    for (const difference of differences) {
      const one = renderDifference(difference, WHOLE);
      characters += JSON.stringify(one).length;
      if (characters > left) return { server, problem: describeLength(reviews.length) };
      shown.push(one);
    }
    left -= characters;
    return { server, digest, differences: shown };
  }

  return reviews.map((one) => ('problem' in one ? { ...one } : renderReview(one)));
}

const describeLength = (servers: number): string =>
  servers > 1
    ? 'has changed more than can be shown together with the others: approve it by itself'
    : `has changed more than the ${MAX_CHARACTERS} characters that can be shown here: approve it by the command`;
