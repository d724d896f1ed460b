import { defineTool } from 'postern/define';

export const serviceHealth = defineTool({
  name: 'service_health',
  description: 'Counts the replicas of a service that are up.',
  inputSchema: {
    type: 'object',
    properties: { service: { type: 'string' } },
    required: ['service'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      service: { type: 'string' },
      up: { type: 'integer', minimum: 0 },
      wanted: { type: 'integer', minimum: 1 },
    },
    required: ['service', 'up', 'wanted'],
    additionalProperties: false,
  },
  run: ({ service }) => ({ structuredContent: { service, up: 2, wanted: 3 } }),
});
