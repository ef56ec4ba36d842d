#!/bin/bash
# Weak and strong scaling by one command: `sbatch benchmarks/scaling.sh`, `qsub benchmarks/scaling.sh`, or, on one
# machine, `bash benchmarks/scaling.sh`; from the repository, in the environment that has numpy_dist. Nodes and tasks
# are asked for by the scheduler's own options, which override these lines.
#SBATCH --job-name=scaling
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#PBS -N scaling
#PBS -l select=4:ncpus=64:mpiprocs=16:ompthreads=4
#PBS -l walltime=01:00:00
#
# RANKS="1 2 4"       how many ranks, one job step after the other (default: powers of two up to all tasks)
# THREADS=4           threads of a rank, at every number of ranks the same (default: the scheduler's)
# FIGURES=name.jsonl  where figures are added (default: scaling.jsonl)
set -e
cd "${SLURM_SUBMIT_DIR:-${PBS_O_WORKDIR:-.}}"
tasks=${SLURM_NTASKS:-${PBS_NP:-$(if [ -n "$PBS_NODEFILE" ]; then wc -l < "$PBS_NODEFILE"; else nproc; fi)}}
threads=${THREADS:-${SLURM_CPUS_PER_TASK:-${OMP_NUM_THREADS:-1}}}
figures=${FIGURES:-scaling.jsonl}
export NUMPY_DIST_NUM_THREADS=$threads OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
if [ -z "$RANKS" ]; then
    for ((ranks = 1; ranks < tasks; ranks *= 2)); do RANKS="$RANKS $ranks"; done
    RANKS="$RANKS $tasks"
fi
for ranks in $RANKS; do
    python -m numpy_dist run -n "$ranks" benchmarks/scaling.py "$figures"
done
python benchmarks/scaling.py "$figures" --report
if python -c "import matplotlib" 2> /dev/null; then
    python benchmarks/scaling.py "$figures" --report --plot "${figures%.jsonl}.png" > /dev/null
fi
