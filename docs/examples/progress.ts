import { setTimeout as pause } from 'node:timers/promises';
import { defineTool } from 'postern/define';

export const restartService = defineTool({
  name: 'restart_service',
  description: 'Restarts the replicas of a service, one after the other.',
  inputSchema: {
    type: 'object',
    properties: {
      service: { type: 'string' },
      replicas: { type: 'integer', minimum: 1, maximum: 100, default: 3 },
    },
    required: ['service'],
    additionalProperties: false,
  },
  async run({ service, replicas = 3 }, { progress, signal }) {
    for (let done = 1; done <= replicas; done += 1) {
      // Stands for the work. Hand the signal on: a call that is cancelled then stops here.
      await pause(20, undefined, { signal });
      progress(done, replicas, `${service}-${done} is up again`);
    }
    return { content: [{ type: 'text', text: `Restarted ${replicas} replicas of ${service}.` }] };
  },
});
