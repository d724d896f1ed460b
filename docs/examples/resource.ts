import { defineResource } from 'postern/define';

export const regions = defineResource({
  uri: 'platform://regions',
  name: 'regions',
  title: 'Regions',
  description: 'Where services can be deployed.',
  mimeType: 'application/json',
  // The same for everybody, and new at most once an hour.
  cache: { ttlMs: 3_600_000, scope: 'public' },
  read: () => ({ text: JSON.stringify(['eu-north', 'eu-west']) }),
});
