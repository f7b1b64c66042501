#!/usr/bin/env bash
# One command: an S3 store, a cluster where there is kind, and the small pipeline on it.
#
#   infra/local/up.sh         SeaweedFS on this machine, and the pipeline against it
#                             with kind, docker and kubectl: a cluster with Argo, JobSet, Kueue and the chart, and the pipeline there
#   infra/local/up.sh down    take all of it away again
#
# Whatever stands lies in STATE. Versions of what is fetched for the cluster can be set; unset, they are the newest.
set -euo pipefail
cd "$(dirname "$0")/../.."

STATE=${STATE:-runs/local-stack}
CONFIG=${CONFIG:-infra/local/small.yaml}
PORT=${PORT:-8333}
WORKERS=${WORKERS:-2}
CLUSTER=${CLUSTER:-compoworld}
ARGO_VERSION=${ARGO_VERSION:-}
JOBSET_VERSION=${JOBSET_VERSION:-}
KUEUE_VERSION=${KUEUE_VERSION:-}
BIN=$PWD/.venv/bin

say() { echo "==> $*"; }

# Where a project's release has a file, of a version or of the newest one.
release() {
    local project=$1 version=$2 file=$3
    if [ -n "$version" ]; then
        echo "https://github.com/$project/releases/download/$version/$file"
    else
        echo "https://github.com/$project/releases/latest/download/$file"
    fi
}

start_store() {
    mkdir -p "$STATE/data"
    if [ ! -f "$STATE/store.env" ]; then
        say "Making keys for the store ($STATE/store.env)"
        (umask 077 && "$BIN/python" -c "import secrets
print(f'AWS_ACCESS_KEY_ID={secrets.token_hex(8)}')
print(f'AWS_SECRET_ACCESS_KEY={secrets.token_hex(20)}')" > "$STATE/store.env")
    fi
    set -a
    # shellcheck source=/dev/null
    . "$STATE/store.env"
    set +a
    export AWS_ENDPOINT_URL="http://127.0.0.1:$PORT" AWS_REGION=us-east-1
    if ! is_up; then
        say "Starting SeaweedFS on port $PORT"
        nohup "$BIN/weed" server -dir="$STATE/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -volume.max=10 -s3 -s3.port="$PORT" \
            -master.port=$((PORT + 1000)) -volume.port=$((PORT + 1001)) -filer.port=$((PORT + 1002)) \
            > "$STATE/seaweedfs.log" 2>&1 < /dev/null &
        echo $! > "$STATE/seaweedfs.pid"
        for _ in $(seq 120); do is_up && break; sleep 0.5; done
        is_up || { echo "SeaweedFS does not answer; see $STATE/seaweedfs.log" >&2; exit 75; }
    fi
    "$BIN/python" - <<'END'
import time, boto3
from botocore.exceptions import ClientError

s3 = boto3.client("s3")
for attempt in range(30):  # it answers before it can store anything
    try:
        s3.create_bucket(Bucket="compoworld")
        break
    except ClientError as error:
        if error.response["Error"]["Code"].startswith("BucketAlready"):
            break
        if attempt == 29:
            raise
        time.sleep(1)
END
}

is_up() { "$BIN/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$PORT/status', timeout=2)" 2> /dev/null; }

run_here() {
    say "Running the small pipeline against s3://compoworld/small"
    "$BIN/compoworld" run --config "$CONFIG" --store s3://compoworld/small --workers "$WORKERS"
}

run_in_cluster() {
    local namespace=compoworld helm tag=local
    helm=$("$BIN/python" -c "from charts.tools import tool; print(tool('helm'))")
    kind get clusters 2> /dev/null | grep -qx "$CLUSTER" || { say "Making the cluster $CLUSTER"; kind create cluster --name "$CLUSTER" --wait 120s; }
    kubectl config use-context "kind-$CLUSTER"

    say "Building the images and loading them into the cluster"
    local target
    for target in job author; do
        docker build --target "$target" --tag "localhost/compoworld-$target:$tag" .
        kind load docker-image --name "$CLUSTER" "localhost/compoworld-$target:$tag"
    done

    say "Installing Argo Workflows, JobSet and Kueue"
    kubectl create namespace argo --dry-run=client --output yaml | kubectl apply -f -
    kubectl apply --server-side --namespace argo -f "$(release argoproj/argo-workflows "$ARGO_VERSION" install.yaml)"
    kubectl apply --server-side -f "$(release kubernetes-sigs/jobset "$JOBSET_VERSION" manifests.yaml)"
    kubectl apply --server-side -f "$(release kubernetes-sigs/kueue "$KUEUE_VERSION" manifests.yaml)"
    kubectl --namespace argo rollout status deployment/workflow-controller --timeout 300s
    kubectl --namespace jobset-system rollout status deployment/jobset-controller-manager --timeout 300s
    kubectl --namespace kueue-system rollout status deployment/kueue-controller-manager --timeout 300s

    say "Installing the chart"
    kubectl create namespace "$namespace" --dry-run=client --output yaml | kubectl apply -f -
    for _ in $(seq 60); do # Kueue looks at each deployment, and refuses all for a while after it says that it is ready
        kubectl --namespace "$namespace" create deployment probe --image=probe --dry-run=server > /dev/null 2>&1 && break
        sleep 2
    done
    kubectl label --overwrite namespace "$namespace" pod-security.kubernetes.io/enforce=restricted
    kubectl --namespace "$namespace" create secret generic compoworld-store --from-env-file="$STATE/store.env" \
        --dry-run=client --output yaml | kubectl apply -f -
    "$helm" upgrade --install compoworld charts/compoworld --namespace "$namespace" --wait --wait-for-jobs --timeout 10m \
        --values charts/compoworld/ci/evaluation-values.yaml \
        --set image.repository=localhost/compoworld --set image.tag="$tag"
    "$helm" test compoworld --namespace "$namespace" --logs

    say "Running the small pipeline as a workflow"
    local workflow
    "$BIN/compoworld" workflow render --out "$STATE/workflows"
    workflow=$(kubectl --namespace "$namespace" create -f "$STATE/workflows/workflow.yaml" --output name)
    while true; do
        case $(kubectl --namespace "$namespace" get "$workflow" --output jsonpath='{.status.phase}') in
            Succeeded) break ;;
            Failed | Error)
                kubectl --namespace "$namespace" get pods
                echo "$workflow failed; see the logs of its pods: kubectl --namespace $namespace logs POD --container main" >&2
                exit 1
                ;;
        esac
        sleep 10
    done
}

down() {
    if [ -f "$STATE/seaweedfs.pid" ]; then
        say "Stopping SeaweedFS"
        kill "$(cat "$STATE/seaweedfs.pid")" 2> /dev/null || true
        rm -f "$STATE/seaweedfs.pid"
    fi
    if command -v kind > /dev/null && kind get clusters 2> /dev/null | grep -qx "$CLUSTER"; then
        say "Taking the cluster away"
        kind delete cluster --name "$CLUSTER"
    fi
    rm -rf "$STATE"
}

if [ "${1:-up}" = down ]; then
    down
    exit
fi
make setup
start_store
run_here
if command -v kind > /dev/null && command -v docker > /dev/null && command -v kubectl > /dev/null; then
    run_in_cluster
else
    say "No cluster: kind, docker and kubectl are not all here"
fi
