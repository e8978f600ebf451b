/**
 * Returns what a job is called: what its caller calls it, else its first input, else its identifier.
 * @param {import('./api.js').ListedJob} job
 */
export function jobName({ job_id: id, client_reference: reference, input_names: [first], input_count: count }) {
  if (reference !== undefined) return reference;
  if (first === undefined) return id;
  return count > 1 ? `${first} + ${(count - 1).toLocaleString('en')}` : first;
}
