// A feature: it gets the runtime and what features before it give, and gives what the parts of the gateway take.
import { defineFeature } from '../../../src/mcp/feature.ts';
import { createTeaEndpoint } from './endpoint.ts';
import { createTeaPanel } from './panel.ts';

interface TeaNeeds {
  readonly minutes: number;
}

export const tea = defineFeature({
  name: 'tea',
  open({ log }, { minutes }: TeaNeeds) {
    log.info('Tea is drawn.', { minutes });
    return {
      gives: { pour: () => `tea, ${minutes} minutes` },
      endpoints: [createTeaEndpoint(minutes)],
      panels: [createTeaPanel(minutes)],
    };
  },
});
